"""Overlays and node sets: what-if views that never leak, and choices of nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot

from tests.cluster.build import container, facts, pod_info
from tests.cluster.snapshot.test_cache import check_columns, make_pod


def cluster() -> Snapshot:
    cache = ClusterCache()
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        cache.add_node(facts(name, zone=zone))
    cache.add_pod(make_pod("default/p0", 1, 80, "b"))
    return cache.snapshot()


def state(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.version,
        snapshot.resource_names,
        [snapshot.info(row) for row in snapshot.order.tolist()],
        snapshot.static_version.tolist(),
        snapshot.usage_version.tolist(),
        snapshot.pod_counts.tolist(),
        [snapshot.requested(name).tolist() for name in snapshot.resource_names],
        [snapshot.allocatable(name).tolist() for name in snapshot.resource_names],
    )


changes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=5)


@given(changes)
def test_overlays_differ_in_their_rows_and_never_leak(steps: list[tuple[int, int, bool]]) -> None:
    base = cluster()
    before = state(base)
    layers = [base]
    for number, (row, cpu, cordon) in enumerate(steps):
        info = layers[-1].info(row).with_pod(make_pod(f"default/q{number}", cpu, 0))
        if cordon:
            info = info.with_facts(replace(info.facts, unschedulable=True))
        layers.append(layers[-1].overlay(row, info))
    states = [state(layer) for layer in layers]
    for layer, below in zip(layers[1:], layers, strict=False):
        check_columns(layer)
        assert layer.is_overlay
        assert layer.order is base.order
        assert layer.version not in {below.version, base.version}
    assert [state(layer) for layer in layers] == states
    assert state(base) == before
    assert not base.is_overlay


def test_versions_of_overlays_never_come_twice() -> None:
    base = cluster()
    info = base.info(0)
    one = base.overlay(0, info.with_pod(make_pod("default/q", 1, 0)))
    two = base.overlay(0, info.with_pod(make_pod("default/q", 2, 0)))
    usage = {int(layer.usage_version[0]) for layer in (base, one, two)}
    assert len(usage) == 3
    assert (one.usage_version[1:] == base.usage_version[1:]).all()
    assert one.static_version is base.static_version
    cordoned = base.overlay(0, info.with_facts(replace(info.facts, unschedulable=True)))
    assert cordoned.static_version[0] != base.static_version[0]


def test_an_overlay_can_bring_a_resource() -> None:
    base = cluster()
    pod = pod_info({"containers": [container(**{"x.com/y": "2"})]})
    layer = base.overlay(1, base.info(1).with_pod(pod))
    assert "x.com/y" in layer.resource_names
    assert "x.com/y" not in base.resource_names
    assert layer.requested("x.com/y").tolist() == [0, 2, 0]
    assert base.requested("x.com/y").tolist() == [0, 0, 0]


def test_an_overlay_is_of_the_same_node() -> None:
    with pytest.raises(ValueError, match="row 0 is node a, not z"):
        cluster().overlay(0, NodeInfo.of(facts("z")))


def test_readers_cannot_write() -> None:
    base = cluster()
    layer = base.overlay(0, base.info(0))
    for snapshot in (base, layer):
        for array in (
            snapshot.order,
            snapshot.pod_counts,
            snapshot.usage_version,
            snapshot.static_version,
            snapshot.requested("cpu"),
            snapshot.allocatable("cpu"),
            snapshot.allocatable("nothing"),
            snapshot.scored_requests("memory"),
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_node_sets() -> None:
    base = cluster()
    every = NodeSet.all(base)
    assert every.names() == ("a", "c", "b")
    assert len(every) == 3
    assert [node.name for node in every.nodes()] == ["a", "c", "b"]
    assert every.take(np.array([True, False, True])).names() == ("a", "b")
    assert every.take(np.array([2, 0])).names() == ("b", "a")
    assert every.take(np.array([False] * 3)).names() == ()
    assert every.rows.dtype == np.intp
    assert base.node("nobody") is None


def test_bounds_of_amounts_grow_in_leaps() -> None:
    cache = ClusterCache()
    cache.add_node(facts("one"))
    cache.add_node(facts("two"))
    snapshot = cache.snapshot().live
    cpus, nothing = snapshot.bounds("allocatable", "cpu"), snapshot.bounds("requested", "cpu")
    assert cpus == (4000, 2**20 - 1)
    assert nothing == (0, 0)
    cache.add_pod(pod_info({"containers": [container(cpu="300m")]}, name="a").on("one"))
    asked = cache.snapshot().live.bounds("requested", "cpu")
    assert asked == (0, 2**20 - 1)
    cache.add_pod(pod_info({"containers": [container(cpu="3")]}, name="b").on("one"))
    cache.remove_node("two")
    assert cache.snapshot().live.bounds("requested", "cpu") is asked
    assert cache.snapshot().live.bounds("allocatable", "cpu") is cpus


def test_resources_that_no_node_has_any_more_take_no_memory() -> None:
    cache = ClusterCache()
    cache.add_node(facts("one"))

    def asked(number: int) -> PodInfo:
        return PodInfo("p", usage=Resources({"cpu": 5, f"example.com/r{number}": 1}), node_name="one")

    for number in range(500):
        cache.add_pod(asked(number))
        snapshot = cache.snapshot().live
        column = snapshot.requested(f"example.com/r{number}").tolist()
        assert (column, snapshot.requested("cpu").tolist()) == ([1], [5])
        cache.remove_pod("default/p")
    assert len(snapshot.resource_names) < 100
    assert snapshot.requested("example.com/r0").tolist() == [0]
    cache.add_pod(asked(0))
    assert cache.snapshot().requested("example.com/r0").tolist() == [1]

"""Arrivals: every change of a node, once for each reader."""

from __future__ import annotations

import pytest
from kdsl.base import change_log
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.plan.counts.arrivals import Arrivals


def _cluster(*names: str) -> ClusterCache:
    cache = ClusterCache()
    for name in names:
        cache.add_node(NodeFacts(name))
    return cache


def _take(log: Arrivals, cache: ClusterCache) -> list[tuple[int, list[str] | None]] | None:
    arrived = log.refresh(cache.snapshot().live)
    if arrived is None:
        return None
    return [(row, None if pods is None else [pod.name for pod in pods]) for row, pods in arrived]


def test_pods_that_arrive_are_logged_by_row() -> None:
    cache, log = _cluster("a", "b"), Arrivals()
    assert _take(log, cache) is None
    start = log.position
    a, b = cache.snapshot().row_of("a"), cache.snapshot().row_of("b")
    cache.add_pod(PodInfo("p1", node_name="a"))
    cache.add_pod(PodInfo("p2", node_name="a"))
    assert _take(log, cache) == [(a, ["p1", "p2"])]
    cache.add_pod(PodInfo("p3", node_name="a"))
    cache.add_pod(PodInfo("p4", node_name="b"))
    assert _take(log, cache) == [(a, ["p3"]), (b, ["p4"])]
    assert _take(log, cache) == []
    arrived = log.since(start)
    assert arrived is not None
    found = [(row, pods and [pod.name for pod in pods]) for row, pods in arrived]
    assert found == [(a, ["p1", "p2"]), (a, ["p3"]), (b, ["p4"])]


def test_other_changes_are_logged_without_pods() -> None:
    cache, log = _cluster("a"), Arrivals()
    cache.add_pod(PodInfo("p1", node_name="a"))
    assert _take(log, cache) is None
    row = cache.snapshot().row_of("a")
    cache.add_node(NodeFacts("a", unschedulable=True))
    assert _take(log, cache) == [(row, None)]
    cache.add_pod(PodInfo("p2", node_name="a"))
    assert _take(log, cache) == [(row, ["p2"])]
    cache.remove_pod("default/p1")
    assert _take(log, cache) == [(row, None)]
    cache.add_node(NodeFacts("b"))
    assert _take(log, cache) == [(cache.snapshot().row_of("b"), None)]


def test_a_pod_in_place_of_an_equal_one_is_a_change() -> None:
    cache, log = _cluster("a"), Arrivals()
    cache.add_pod(PodInfo("p1", node_name="a"))
    assert _take(log, cache) is None
    cache.remove_pod("default/p1")
    cache.add_pod(PodInfo("p1", node_name="a"))
    cache.add_pod(PodInfo("p2", node_name="a"))
    assert _take(log, cache) == [(cache.snapshot().row_of("a"), None)]


def test_nodes_that_keep_their_labels_and_pods_are_unmoved() -> None:
    cache, log = _cluster("a", "b"), Arrivals()
    cache.add_pod(PodInfo("p1", node_name="a"))
    _take(log, cache)
    a, b = cache.snapshot().row_of("a"), cache.snapshot().row_of("b")
    cache.add_node(NodeFacts("a", annotations=FrozenMap({"beat": "1"})))
    cache.add_node(NodeFacts("b", labels=FrozenMap({"zone": "z"})))
    assert _take(log, cache) == [(a, None), (b, None)]
    assert log.unmoved == {a}
    cache.add_node(NodeFacts("a", annotations=FrozenMap({"beat": "2"})))
    cache.add_pod(PodInfo("p2", node_name="a"))
    assert _take(log, cache) == [(a, None)]
    assert log.unmoved == set()
    cache.add_pod(PodInfo("p3", node_name="b"))
    cache.remove_node("a")
    _take(log, cache)
    assert log.unmoved == set()


def test_a_reader_that_is_far_behind_reads_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "_SPARE", 1)
    cache, log = _cluster("a"), Arrivals()
    _take(log, cache)
    start = log.position
    for number in range(6):
        assert (log.since(start) is None) is (number > 4)
        cache.add_pod(PodInfo(f"p{number}", node_name="a"))
        _take(log, cache)
    recent = log.since(log.position - 1)
    assert recent is not None
    assert [pod.name for _, pods in recent for pod in pods or ()] == ["p5"]

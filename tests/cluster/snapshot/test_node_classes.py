"""Equal nodes have one class number, whatever happens to them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot import node_classes
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.node_classes import NO_CLASS, NODE_CLASS_FIELDS

OF_FACTS = ("unschedulable", "taints", "allocatable")
NAMES = st.sampled_from("abcd")
FACTS = st.builds(
    NodeFacts,
    NAMES,
    labels=st.sampled_from([FrozenMap({"x": "y"}), FrozenMap({})]),
    unschedulable=st.booleans(),
    taints=st.sampled_from([(), (Taint("t", "", "NoSchedule"),)]),
    allocatable=st.integers(0, 2).map(lambda cpu: Resources({"cpu": cpu})),
)
PODS = st.builds(
    PodInfo,
    NAMES,
    node_name=NAMES,
    usage=st.integers(0, 2).map(lambda cpu: Resources({"cpu": cpu})),
    scored_usage=st.integers(0, 2).map(lambda cpu: Resources({"cpu": cpu})),
    host_ports=st.sampled_from([(), (HostPort("0.0.0.0", "TCP", 80),)]),
)
CHANGES = st.one_of(
    FACTS.map(lambda facts: lambda cache: cache.add_node(facts)),
    PODS.map(lambda pod: lambda cache: cache.add_pod(pod)),
    NAMES.map(lambda name: lambda cache: cache.remove_node(name)),
    NAMES.map(lambda name: lambda cache: cache.remove_pod(f"default/{name}")),
)


@given(st.lists(CHANGES, max_size=30), st.sampled_from([0, 1024]))
def test_equal_numbers_are_equal_node_classes(changes: list, spare: int) -> None:  # type: ignore[type-arg]  # of callables
    before, node_classes._SPARE = node_classes._SPARE, spare
    try:
        cache = ClusterCache()
        for change in changes:
            change(cache)
            snapshot = cache.snapshot()
            assert isinstance(snapshot, LiveSnapshot)
            for numbers, fields in (
                (snapshot.node_classes, NODE_CLASS_FIELDS),
                (snapshot.fact_classes, OF_FACTS),
            ):
                seen: dict[int, tuple[object, ...]] = {}
                for row in snapshot.order.tolist():
                    node = snapshot.info(row)
                    look = tuple(getattr(node, field) for field in fields)
                    number = int(numbers.ids[row])
                    assert NO_CLASS < number < numbers.size
                    assert seen.setdefault(number, look) == look
                assert len(set(map(repr, seen.values()))) == len(seen)
    finally:
        node_classes._SPARE = before


def test_names_and_labels_are_no_part_of_a_look() -> None:
    cache, facts = ClusterCache(), NodeFacts("a")
    for name in ("a", "b"):
        cache.add_node(replace(facts, name=name, labels=FrozenMap({"name": name})))
    snapshot = cache.snapshot()
    assert isinstance(snapshot, LiveSnapshot)
    assert snapshot.node_classes.ids[0] == snapshot.node_classes.ids[1]

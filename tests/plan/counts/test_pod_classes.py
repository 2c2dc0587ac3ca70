"""Classes of pods: a new selector that matches most pods reads no pod that an earlier one has read."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.counts import pod_classes
from kdsl.plan.counts.topology import Topology

from tests.plan.counts.test_naive import ClassQuestion, class_of

READ: list[str] = []
"""The names of the pods whose key was read."""


def key(pod: PodInfo) -> Hashable:
    READ.append(pod.name)
    return class_of(pod)


def pod(number: int, app: str, node: str) -> PodInfo:
    return PodInfo(f"p{number}", node_name=node, priority=1, labels=FrozenMap({"app": app}))


@pytest.fixture
def cache() -> ClusterCache:
    """A cluster with 30 pods of two apps."""
    READ.clear()
    cache = ClusterCache()
    for number in range(3):
        cache.add_node(NodeFacts(f"n{number}", labels=FrozenMap({"zone": "xy"[number % 2]})))
    for number in range(30):
        cache.add_pod(pod(number, "ab"[number % 2], f"n{number % 3}"))
    return cache


def others_than(app: str, cache: ClusterCache) -> int:
    """Count the pods that are not of an app, as for a selector that was never used."""
    requirement = LabelRequirement("app", Operator.NOT_IN, frozenset({app}))
    selector = LabelSelector(frozenset({requirement}))
    term = PodAffinityTerm("zone", 0, selector, frozenset({"default"}), None)
    return Topology(cache.snapshot(), "zone").sum(ClassQuestion(term, key), Meter.of(1000)).total()


def test_a_new_selector_reads_the_pods_of_changed_nodes_only(cache: ClusterCache) -> None:
    assert others_than("a", cache) == 15
    assert len(READ) == 30
    assert (others_than("b", cache), others_than("c", cache)) == (15, 30)
    assert len(READ) == 30
    cache.add_pod(pod(30, "c", "n0"))
    assert others_than("c", cache) == 30
    assert len(READ) == 30 + 11
    cache.remove_pod("default/p1")
    assert others_than("d", cache) == 30
    assert len(READ) == 30 + 11 + 9
    cache.remove_node("n2")
    assert others_than("d", cache) == 11 + 9


def test_with_too_many_classes_pods_are_read_one_by_one(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_classes, "MAX_CLASSES", 2)
    assert others_than("a", cache) == 15
    READ.clear()
    cache.add_pod(pod(30, "c", "n0"))
    assert others_than("a", cache) == 16
    # The classes are given up at the third, and begun anew the next time: pods of old classes may be gone.
    assert len(READ) >= 31
    cache.remove_pod("default/p30")
    assert others_than("a", cache) == 15
    READ.clear()
    assert others_than("b", cache) == 15
    assert not READ


def test_another_selected_label_makes_new_classes(cache: ClusterCache) -> None:
    assert others_than("a", cache) == 15
    READ.clear()
    new = LabelRequirement("a-label-that-no-selector-named", Operator.EXISTS)
    LabelSelector(frozenset({new}))
    assert others_than("a", cache) == 15
    assert len(READ) == 30

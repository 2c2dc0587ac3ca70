"""What a change of the cluster is, as an event."""

from __future__ import annotations

import pytest
from kdsl.base.events import Action, Resource
from kdsl.base.resources import Resources
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.events import ClusterEvent, node_actions
from kdsl.cluster.frozen_map import FrozenMap
from kdsl.cluster.node import NodeFacts
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.taints import Taint

A, B = Taint("a", "", "NoSchedule"), Taint("b", "", "NoSchedule")
BEFORE = NodeFacts("n", taints=(A,), allocatable=Resources({"cpu": 2, "pods": 2}))


@pytest.mark.parametrize(
    ("after", "actions"),
    [
        (BEFORE, Action.NONE),
        (NodeFacts("n", taints=(B,), allocatable=BEFORE.allocatable), Action.NODE_TAINT_ADDED | Action.NODE_TAINT_REMOVED),
        (NodeFacts("n", taints=(A,), allocatable=Resources({"cpu": 1, "pods": 3})), Action.NODE_ALLOCATABLE),
        (NodeFacts("n", taints=(A,), allocatable=BEFORE.allocatable, unschedulable=True), Action.NODE_CORDONED),
        (NodeFacts("n", FrozenMap({"x": "y"}), taints=(A,), allocatable=BEFORE.allocatable), Action.NODE_LABEL),
    ],
)  # fmt: skip
def test_changes_of_a_node(after: NodeFacts, actions: Action) -> None:
    assert node_actions(BEFORE, after) == actions


def test_the_cache_tells_of_every_change_with_the_node_before_and_after() -> None:
    told: list[ClusterEvent] = []
    cache = ClusterCache()
    cache.observe(told.append)
    for name in ("n", "m"):
        cache.add_node(NodeFacts(name))
    pod = PodInfo("p")
    cache.assume(pod, "n")
    cache.add_pod(pod.on("n"))  # it confirms what is known
    cache.add_pod(pod.on("m"))
    cache.remove_pod(pod.key)
    cache.remove_node("m")
    assert [(event.resource, event.actions) for event in told] == [
        (Resource.NODE, Action.ADD),
        (Resource.NODE, Action.ADD),
        (Resource.ASSIGNED_POD, Action.ADD),
        (Resource.ASSIGNED_POD, Action.DELETE),
        (Resource.ASSIGNED_POD, Action.ADD),
        (Resource.ASSIGNED_POD, Action.DELETE),
        (Resource.NODE, Action.DELETE),
    ]
    counts = [
        (one.node_before and one.node_before.pod_count, one.node_after and one.node_after.pod_count)
        for one in told
    ]
    assert counts == [(None, 0), (None, 0), (0, 1), (1, 0), (0, 1), (1, 0), (0, None)]


def test_an_observer_that_listens_to_some_pods_is_told_of_those_and_of_everything_else() -> None:
    told: list[ClusterEvent] = []
    cache = ClusterCache()
    cache.observe(told.append, lambda pod: pod == "default/heard")
    cache.add_node(NodeFacts("n"))
    for name in ("heard", "unheard"):
        cache.assume(PodInfo(name), "n")
        cache.remove_pod(f"default/{name}")
    pods = [(event.actions, event.pod and event.pod.name) for event in told]
    assert pods == [(Action.ADD, None), (Action.ADD, "heard"), (Action.DELETE, "heard")]

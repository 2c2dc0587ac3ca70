"""Changes of the cluster as events."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.events import Action, Resource
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.containers import Container
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent, node_actions, pod_actions

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


POD = PodInfo(
    "p",
    "x",
    usage=Resources({"cpu": 2}),
    requests=Resources({"cpu": 2}),
    tolerations=(Toleration("a", "Exists", "", ""),),
)
ADDED, REMOVED = Action.POD_TOLERATION_ADDED, Action.POD_TOLERATION_REMOVED
SCALED = (Container("c", requests=Resources({"cpu": 3})),)


@pytest.mark.parametrize(
    ("changes", "actions"),
    [
        ({}, Action.NONE),
        ({"labels": FrozenMap({"k": "v"})}, Action.POD_LABEL),
        ({"usage": Resources({"cpu": 3})}, Action.POD_SCALE_UP),
        ({"requests": Resources({"cpu": 1})}, Action.POD_SCALE_DOWN),
        ({"usage": Resources({"memory": 1})}, Action.POD_SCALE_UP | Action.POD_SCALE_DOWN),
        ({"tolerations": ()}, REMOVED),
        ({"tolerations": (*POD.tolerations, Toleration("b", "Exists", "", ""))}, ADDED),
        ({"tolerations": (Toleration("b", "Exists", "", ""),)}, ADDED | REMOVED),
        ({"node_name": "n", "nominated_node_name": "n"}, Action.NONE),
        ({"priority": 7}, Action.POD_OTHER),
        ({"containers": SCALED}, Action.POD_OTHER),
        ({"init_containers": SCALED}, Action.POD_OTHER),
        ({"containers": SCALED, "requests": Resources({"cpu": 3})}, Action.POD_SCALE_UP),
        ({"init_containers": SCALED, "usage": Resources({"cpu": 1})}, Action.POD_SCALE_DOWN),
        ({"scheduling_gates": ("g",)}, Action.POD_OTHER),
    ],
)
def test_changes_of_a_pod(changes: dict[str, Any], actions: Action) -> None:
    assert pod_actions(POD, POD.with_fields(**changes)) == actions


@pytest.mark.parametrize(
    ("before", "after", "actions"),
    [
        (("g",), (), Action.POD_GATES_ELIMINATED),
        (("g", "h"), ("g",), Action.POD_OTHER),
        (("g",), ("g",), Action.NONE),
    ],
)
def test_the_last_gate_is_the_one_that_matters(
    before: tuple[str, ...], after: tuple[str, ...], actions: Action
) -> None:
    gated = POD.with_fields(scheduling_gates=before)
    assert pod_actions(gated, POD.with_fields(scheduling_gates=after)) == actions


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

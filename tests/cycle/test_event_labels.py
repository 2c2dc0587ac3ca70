"""Names of events are kube-scheduler's, and the queue counts what moves pods by them."""

from __future__ import annotations

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, Resource
from kdsl.base.times import SECOND
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.event_labels import event_label
from kdsl.cycle.pending import NOBODY, Rejectors
from kdsl.cycle.queue import SchedulingQueue
from kdsl.cycle.routing import Routes


@pytest.mark.parametrize(
    ("resource", "actions", "name"),
    [
        (Resource.ASSIGNED_POD, Action.DELETE, "AssignedPodDelete"),
        (Resource.NODE, Action.ADD, "NodeAdd"),
        (Resource.NODE, Action.NODE_ALLOCATABLE_UP, "NodeUpdateNodeAllocatable"),
        (Resource.NODE, Action.NODE_UNCORDONED | Action.NODE_OTHER, "NodeUpdateNodeTaint"),
        (Resource.NODE, Action.NODE_OTHER, "NodeUpdate"),
        (Resource.TARGET_POD, Action.POD_TOLERATION_ADDED, "UnschedulablePodUpdatePodToleration"),
        (Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, "PersistentVolumeClaimAdd"),
    ],
)
def test_names(resource: Resource, actions: Action, name: str) -> None:
    assert event_label(ClusterEvent(resource, actions)) == name


def test_an_event_with_a_name_keeps_it() -> None:
    assert event_label(ClusterEvent(Resource.ANY, Action.ALL, label="ForceActivate")) == "ForceActivate"


def test_every_way_into_the_queue_is_counted_once() -> None:
    clock = ManualClock(10**18)
    queue = SchedulingQueue(Routes((), None), clock)
    for name in ("a", "b", "c"):
        queue.add(PodInfo(name))
    assert queue.incoming == {("active", "UnschedulablePodAdd"): 3}
    for _ in range(3):
        queue.pop()
    assert queue.in_flight == 3
    queue.requeue("default/a", NOBODY)
    queue.requeue("default/b", Rejectors(("Fit",)))
    queue.requeue("default/c", Rejectors(("Fit",)))
    assert queue.sizes == {"active": 0, "backoff": 1, "unschedulable": 2, "gated": 0}
    assert queue.rejected() == {("Fit", ""): 2}
    queue.activate(["default/b"])
    assert queue.pop() is not None
    clock.advance(5 * SECOND)
    queue.notice(ClusterEvent(Resource.NODE, Action.ADD))
    queue.pop()
    assert queue.incoming == {
        ("active", "UnschedulablePodAdd"): 3,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("active", "ForceActivate"): 1,
        ("active", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }

"""Names of cluster events as in kube-scheduler's metrics: `AssignedPodDelete`, `NodeAdd`."""

from __future__ import annotations

from functools import cache
from typing import Final

from kdsl.base.events import Action, Resource
from kdsl.cluster.snapshot.events import ClusterEvent

_SUBJECTS: Final = {Resource.TARGET_POD: "UnschedulablePod", Resource.ANY: "Any"}
_ACTIONS: Final = (
    (Action.ADD, "Add"),
    (Action.DELETE, "Delete"),
    (Action.NODE_ALLOCATABLE, "UpdateNodeAllocatable"),
    (Action.NODE_LABEL, "UpdateNodeLabel"),
    (Action.NODE_TAINT, "UpdateNodeTaint"),
    (Action.NODE_ANNOTATION, "UpdateNodeAnnotation"),
    (Action.POD_LABEL, "UpdatePodLabel"),
    (Action.POD_SCALE_DOWN, "UpdatePodScaleDown"),
    (Action.POD_TOLERATION, "UpdatePodToleration"),
    (Action.POD_GATES_ELIMINATED, "UpdatePodSchedulingGatesEliminated"),
)


def event_label(event: ClusterEvent) -> str:
    """Return the name of an event: its own, else resource and action, the first action of several."""
    return event.label or _name(event.resource, event.actions)


@cache
def _name(resource: Resource, actions: Action) -> str:
    # Few combinations occur, so the cache stays small.
    word = next((word for action, word in _ACTIONS if action & actions), "Update")
    return _SUBJECTS.get(resource, str(resource)) + word

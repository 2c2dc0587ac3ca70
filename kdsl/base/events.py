"""Cluster events: resources, actions, and patterns that match them.

These are kube-scheduler's resources and actions. Where kube-scheduler has one action for changes in both
directions (`UpdateNodeTaint`), this module has one bit for each direction; kube-scheduler's action is the
union of the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntFlag, StrEnum


class Resource(StrEnum):
    """The resource of an event. `TargetPod` is the waiting pod itself, `*` any resource."""

    ANY = "*"
    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    TARGET_POD = "TargetPod"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    POD_DISRUPTION_BUDGET = "PodDisruptionBudget"
    RESOURCE_QUOTA = "ResourceQuota"
    DEVICE_CLASS = "DeviceClass"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"


class Action(IntFlag):
    """The action of an event; an event may combine several."""

    NONE = 0
    ADD = 1
    DELETE = 2
    NODE_ALLOCATABLE_UP = 1 << 2
    NODE_ALLOCATABLE_DOWN = 1 << 3
    NODE_LABEL = 1 << 4
    NODE_TAINT_ADDED = 1 << 5
    NODE_TAINT_REMOVED = 1 << 6
    NODE_CORDONED = 1 << 7
    NODE_UNCORDONED = 1 << 8
    NODE_ANNOTATION = 1 << 9
    NODE_IMAGE = 1 << 10
    NODE_OTHER = 1 << 11
    POD_LABEL = 1 << 12
    POD_SCALE_UP = 1 << 13
    POD_SCALE_DOWN = 1 << 14
    POD_TOLERATION_ADDED = 1 << 15
    POD_TOLERATION_REMOVED = 1 << 16
    POD_GATES_ELIMINATED = 1 << 17
    POD_OTHER = 1 << 18
    UPDATE_OTHER = 1 << 19

    NODE_ALLOCATABLE = NODE_ALLOCATABLE_UP | NODE_ALLOCATABLE_DOWN
    NODE_TAINT = NODE_TAINT_ADDED | NODE_TAINT_REMOVED | NODE_CORDONED | NODE_UNCORDONED
    POD_TOLERATION = POD_TOLERATION_ADDED | POD_TOLERATION_REMOVED
    UPDATE = (
        NODE_ALLOCATABLE
        | NODE_LABEL
        | NODE_TAINT
        | NODE_ANNOTATION
        | NODE_IMAGE
        | NODE_OTHER
        | POD_LABEL
        | POD_SCALE_UP
        | POD_SCALE_DOWN
        | POD_TOLERATION
        | POD_GATES_ELIMINATED
        | POD_OTHER
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


@dataclass(frozen=True, slots=True, order=True)
class EventPattern:
    """Events of one resource (or of any) with at least one of these actions."""

    resource: Resource
    actions: Action = Action.ALL

    def matches(self, resource: Resource, actions: Action) -> bool:
        """Return whether the pattern matches an event with this resource and these actions."""
        if self.resource is Resource.ANY or resource is Resource.ANY:
            return True
        return self.resource is resource and bool(self.actions & actions)

    def words(self) -> tuple[str, ...]:
        """Return the actions in words: one text for each action, one for all changes where any change
        matches.
        """
        if self.resource is Resource.ANY:
            return ("anything in the cluster changes",)
        subject = _SUBJECTS.get(self.resource, f"a {self.resource}")
        if self.resource not in _WITH_DETAILS:
            texts = _OBJECT_WORDS
        else:
            texts = _POD_WORDS if self.resource is not Resource.NODE else _NODE_WORDS
        # A waiting pod exists already: its own add and delete events cannot occur while it waits.
        actions = self.actions & (Action.UPDATE if self.resource is Resource.TARGET_POD else Action.ALL)
        changes = {action for action in texts if action & Action.UPDATE}
        if all(action & actions for action in changes):
            texts = {action: text for action, text in texts.items() if action not in changes}
            texts[Action.UPDATE] = "{} changes"
        return tuple(text.format(subject) for action, text in texts.items() if action & actions)

    def __str__(self) -> str:
        names = "|".join(action.name or "" for action in _NAMED if action & self.actions == action)
        return f"{self.resource}/{'ALL' if self.actions == Action.ALL else names}"


EVERYTHING = (EventPattern(Resource.ANY),)
"""The patterns of a plugin that does not declare its events."""


def merged(patterns: Iterable[EventPattern]) -> tuple[EventPattern, ...]:
    """Return the patterns with one entry per resource, in the order of `Resource`."""
    actions: dict[Resource, Action] = {}
    for pattern in patterns:
        actions[pattern.resource] = actions.get(pattern.resource, Action.NONE) | pattern.actions
    if Resource.ANY in actions:
        return EVERYTHING
    return tuple(EventPattern(resource, actions[resource]) for resource in Resource if resource in actions)


def read_pattern(text: str) -> EventPattern:
    """Read `Node/ADD|NODE_LABEL`; without actions the pattern matches all of them. Raises ValueError."""
    resource, _, names = text.partition("/")
    try:
        actions = Action.NONE if names else Action.ALL
        for name in names.split("|") if names else ():
            actions |= Action[name]
        return EventPattern(Resource(resource), actions)
    except (KeyError, ValueError):
        raise ValueError(f"not an event pattern: {text!r}") from None


_NAMED = tuple(action for action in Action if action.bit_count() == 1)
_WITH_DETAILS = frozenset({Resource.NODE, Resource.ASSIGNED_POD, Resource.TARGET_POD})
_SUBJECTS = {
    Resource.NODE: "a node",
    Resource.ASSIGNED_POD: "a pod on a node",
    Resource.TARGET_POD: "the pod itself",
}
_NODE_WORDS = {
    Action.ADD: "{} is added",
    Action.DELETE: "{} is removed",
    Action.NODE_ALLOCATABLE_UP: "{} gets more allocatable",
    Action.NODE_ALLOCATABLE_DOWN: "{} gets less allocatable",
    Action.NODE_LABEL: "labels of {} change",
    Action.NODE_TAINT_ADDED: "{} gets a taint",
    Action.NODE_TAINT_REMOVED: "{} loses a taint",
    Action.NODE_CORDONED: "{} is cordoned",
    Action.NODE_UNCORDONED: "{} is uncordoned",
    Action.NODE_ANNOTATION: "annotations of {} change",
    Action.NODE_IMAGE: "images on {} change",
    Action.NODE_OTHER: "something else of {} changes",
}
_POD_WORDS = {
    Action.ADD: "{} appears",
    Action.DELETE: "{} goes away",
    Action.POD_LABEL: "labels of {} change",
    Action.POD_SCALE_UP: "{} asks for more",
    Action.POD_SCALE_DOWN: "{} asks for less",
    Action.POD_TOLERATION_ADDED: "{} gets a toleration",
    Action.POD_TOLERATION_REMOVED: "{} loses a toleration",
    Action.POD_GATES_ELIMINATED: "{} loses its last scheduling gate",
    Action.POD_OTHER: "something else of {} changes",
}
_OBJECT_WORDS = {
    Action.ADD: "{} is added",
    Action.DELETE: "{} is removed",
    Action.UPDATE_OTHER: "{} changes",
}

"""Reading fields and methods of views from the objects of `kdsl.cluster`.

A field `usedHostPorts` is the attribute `used_host_ports`, a method `conflictsWith` the method
`conflicts_with`. Values that the language wraps (timestamps, optionals) are bare in the objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from kdsl.check.model.types import Type
from kdsl.cluster.api.storage_objects import PersistentVolume
from kdsl.cluster.devices.room import room
from kdsl.cluster.devices.typical import TypicalPod, fragmentation
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selectors import NodeRequirement, NodeSelector, NodeTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.snapshot.groups import PodGroup
from kdsl.eval.values import NONE, Optional, Timestamp, Value

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


@cache
def attribute_of(name: str) -> str:
    """Return the attribute that holds the field or method: its name in snake case."""
    return _CAPITAL.sub(r"_\1", name).lower()


def wrapper_of(type_: Type) -> Callable[[Value], Value] | None:
    """Return the function that converts an attribute to a value of the type; None if it is one already."""
    if type_.name == "timestamp":
        return Timestamp
    if type_.name == "optional":
        return lambda value: NONE if value is None else Optional(value)
    if type_.name in EMPTY_VIEWS:
        empty = EMPTY_VIEWS[type_.name]
        return lambda value: empty if value is None else value
    return None


@cache
def method_of(function: str) -> Callable[..., Value] | None:
    """Return a caller of the method `View.method`; None if that is no method."""
    attribute = method_name(function)
    return None if attribute is None else lambda target, *args: getattr(target, attribute)(*args)


def method_name(function: str) -> str | None:
    """Return the attribute that is the method `View.method`; None if that is no method."""
    view, dot, name = function.rpartition(".")
    return attribute_of(name) if dot and view[:1].isupper() else None


READ_OF_PODS: Final[Mapping[str, tuple[str, ...]]] = {
    "PodAffinityTerm.matches": PodAffinityTerm.READ_OF_PODS,
    "PodGroup.includes": PodGroup.READ_OF_PODS,
    "SpreadConstraint.countsNode": SpreadConstraint.READ_OF_SPREAD_PODS,
    "SpreadConstraint.selects": SpreadConstraint.READ_OF_PODS,
}
"""The attributes of the given pod that methods read; maps among them only by key."""

EMPTY_VIEWS: Final[Mapping[str, Value]] = {
    "NodeSelector": NodeSelector((), None),
    "Volume": VolumeInfo.of(PersistentVolume()),
}
"""The value of an absent struct, by view."""

VIEW_FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "fragmentation": fragmentation,
    "room": room,
    "taint": Taint,
    "typicalPod": TypicalPod.of,
    "spread": SpreadConstraint,
    "nodeLabel": NodeRequirement.on_label,
    "nodeField": NodeRequirement.on_field,
    "nodeTerm": NodeTerm.of,
}
"""The functions of the views file that make views."""

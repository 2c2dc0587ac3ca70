"""What a device reads that tells one node from another of the same cards: where it reads nothing of that,
nodes whose cards have equal numbers get equal answers.

Cards have names of their own, and nodes have annotations in which those names are. A test in `fit` that reads
these and nothing of what is taken is asked beforehand, once per node: see `is_own`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from kdsl.check.model.devices import CheckedTest
from kdsl.check.model.typed import CallFn, CallOf, FieldOf, HasField, ListOf, MapOf, Typed, Var
from kdsl.check.model.types import Type
from kdsl.plan.devices.reads import parts

_VIEWS: Final = frozenset(
    ("Device", "DeviceGrant", "DeviceAllotment", "DeviceAllocation", "DeviceTenant", "DeviceNode")
)
_PASSES: Final = frozenset(("size", "_[_]"))
"""Functions that look at nothing of the cards in a list."""
_CARDS: Final = frozenset((("Device", "id"), ("DeviceGrant", "id")))
_NAMES: Final = _CARDS | frozenset(
    (
        ("DeviceNode", "name"),
        ("DeviceNode", "labels"),
        ("DeviceNode", "annotations"),
        ("DeviceNode", "capacity"),
    )
)
_OTHERS: Final = frozenset(
    (
        ("Device", "attributes"),
        ("Device", "tenants"),
        ("DeviceGrant", "attributes"),
        ("DeviceAllocation", "text"),
        ("DeviceTenant", "name"),
        ("DeviceTenant", "namespace"),
        ("DeviceTenant", "annotations"),
        ("DeviceTenant", "memory"),
        ("DeviceTenant", "cores"),
    )
)
_STANDING: Final = frozenset(
    ("id", "index", "kind", "type", "numa", "mode", "healthy", "slots", "memory", "cores")
)
"""Fields of `Device` that no pod changes."""
_POD: Final = frozenset(("name", "namespace", "uid", "labels", "annotations", "runtimeClass"))


def tells(*sections: object) -> bool:
    """Tell whether checked sections read what tells nodes of the same cards apart."""
    return any(_reads_names(section) or _reads_others(section) for section in sections)


def is_own(test: CheckedTest, scope: Mapping[str, Var], lets: Collection[int]) -> bool:
    """Tell whether a test reads names of cards or nodes, and beside them only what pods on the node do not
    change, the policy and the pod without its containers. `lets` are the slots of the `let`s of `fit`.
    """
    condition = test.condition
    if not _reads_names(condition) or _reads_others(condition) or tells(test.reason):
        return False
    seen = {scope[name].slot for name in ("pod", "node", "policy", "device")}
    others = {variable.slot for variable in scope.values()}.union(lets) - seen
    for part in parts(condition):
        if isinstance(part, Var) and part.slot in others:
            return False
        if isinstance(part, FieldOf | HasField):
            if part.view == "Device" and part.field not in _STANDING:
                return False
            if part.view == "DevicePod" and part.field not in _POD:
                return False
        if isinstance(part, CallFn) and any(
            _mentions(each.type, _VIEWS | {"DevicePod"}) for each in part.args
        ):
            return False
    return True


def _reads_names(section: object) -> bool:
    compared: set[int] = set()
    for part in parts(section):
        match part:
            case CallOf(function="_==_" | "_!=_", args=(FieldOf() as one, FieldOf() as other)) if _is_card(
                one
            ) and _is_card(other):
                # Whether two names are of one card of a node is the same whatever the cards are called.
                compared |= {id(one), id(other)}
            case FieldOf() | HasField() if (part.view, part.field) in _NAMES and id(part) not in compared:
                return True
    return False


def _is_card(name: FieldOf) -> bool:
    return (name.view, name.field) in _CARDS


def _reads_others(section: object) -> bool:
    """Tell whether a section reads other things that differ, or hands a card as a whole to who knows what."""
    counted: set[int] = set()
    for part in parts(section):
        match part:
            case CallOf(function="size", args=(FieldOf() as field, *_)):
                counted.add(id(field))
            case FieldOf() | HasField() if (part.view, part.field) in _OTHERS and id(part) not in counted:
                return True
            case CallFn() if _hands_over(part.args):
                return True
            case CallOf() if part.function not in _PASSES and _hands_over(part.args):
                return True
            case ListOf() if _hands_over(tuple(item.value for item in part.items)):
                return True
            case MapOf() if _hands_over(tuple(entry.value for entry in part.entries)):
                return True
    return False


def _hands_over(values: tuple[Typed, ...]) -> bool:
    return any(_mentions(value.type, _VIEWS) for value in values)


def _mentions(type_: Type, views: frozenset[str]) -> bool:
    return type_.name in views or any(_mentions(each, views) for each in type_.args)

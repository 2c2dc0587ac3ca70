"""The facts of nodes and cards that expressions read beside the shapes of cards.

Nodes whose cards have equal shapes, and whose facts are equal, get equal answers. So do cards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Final

from kdsl.base.resources import Resources
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    FieldOf,
    HasField,
    ListOf,
    MapOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import Type
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.plan.devices.reads import attributes_read, keys_read
from kdsl.plan.devices.section import Section

_SHAPE: Final = attrgetter("shape")
ANY: Final = "*"
"""Stands for all fields, of nodes and of cards."""
NAMES: Final = frozenset(("Device.id", "DeviceGrant.id"))
VIEWS: Final = frozenset(
    ("Device", "DeviceGrant", "DeviceAllotment", "DeviceAllocation", "DeviceTenant", "DeviceNode")
)
_PASSES: Final = frozenset(("size", "_[_]"))
"""Functions that read nothing of the cards in a list."""
_USED: Final = "used "
"""Marks what is read of a card only where one of its tenants is visited."""
NODE_FIELDS: Final = tuple(
    f"DeviceNode.{field}"
    for field in ("name", "labels", "annotations", "capacity", "allocatable", "requested")
)
_TENANT: Final = tuple(
    f"DeviceTenant.{field}" for field in ("name", "namespace", "annotations", "memory", "cores")
)
_CARD: Final = ("Device.id", "Device.attributes")
_READ: Final = frozenset(
    (*NAMES, *_CARD, "DeviceGrant.attributes", "DeviceAllocation.text", *NODE_FIELDS, *_TENANT)
)
_SAME: Final = {"DeviceGrant.id": "Device.id", "DeviceGrant.attributes": "Device.attributes"}
"""The fields of grants that are those of their cards."""

Parts = tuple[tuple[str, tuple[str, ...] | None], ...]
"""Attributes, and the keys that are read of them; None for all of it."""


@dataclass(frozen=True)
class Facts:
    """The parts that some expressions read of a node, of each card, of each used card and of each tenant of a
    card.
    """

    node: Parts = ()
    card: Parts = ()
    used: Parts = ()
    tenants: Parts = ()

    @staticmethod
    def read_by(*sections: Section) -> Facts:
        """Return the facts that sections read."""
        exprs = [expr for section in sections for expr in section.opened]
        read = {_SAME.get(name, name) for expr in exprs for name in fields_read(expr)}
        if ANY in read:
            read |= {*NODE_FIELDS, *_TENANT, *_CARD}

        def parts(fields: Sequence[str], mark: str = "") -> Parts:
            found = (field.split(".") for field in fields if mark + field in read)
            return tuple((field, None if ANY in read else _keys(exprs, view, field)) for view, field in found)

        return Facts(parts(NODE_FIELDS), parts(_CARD), parts(_CARD, _USED), parts(_TENANT))

    def __bool__(self) -> bool:
        return bool(self.node or self.card or self.used or self.tenants)

    @property
    def are_of_cards(self) -> bool:
        return bool(self.card or self.used or self.tenants)

    def of_node(self, node: DeviceNode) -> Hashable:
        """Return the facts of a node without its cards."""
        return values_of(node, self.node)

    def of_card(self, card: Card) -> Hashable:
        """Return the facts of a card."""
        found = values_of(card, self.card)
        if card.tenants and (self.used or self.tenants):
            found += values_of(card, self.used)
            found += tuple([values_of(tenant, self.tenants) for tenant in card.tenants])
        return found

    @cached_property
    def key(self) -> Callable[[Card], tuple[Hashable, ...]]:
        """The key of a card: its shape, with its facts if there are any."""
        return (lambda card: (card.shape, self.of_card(card))) if self.are_of_cards else _SHAPE


def pod_parts(exprs: Sequence[TypedExpr]) -> Parts:
    """Return the parts of a pod that expressions read, but for its containers."""
    keys = keys_read(exprs, "DevicePod", "annotations")
    of_annotations = None if keys is None else tuple(sorted(keys))
    read = sorted(attributes_read(exprs))
    return tuple([(name, of_annotations if name == "annotations" else None) for name in read])


def values_of(thing: object, parts: Parts) -> tuple[Hashable, ...]:
    """Return the values of parts: equal ones for things of which rules read the same."""
    return tuple([_plain(getattr(thing, name), keys) for name, keys in parts]) if parts else ()


def _plain(value: object, keys: tuple[str, ...] | None) -> Hashable:
    """Return a text that is equal only for maps of equal content; other values as they are."""
    if isinstance(value, Resources) and keys is not None:
        return tuple([value[key] for key in keys])
    if not isinstance(value, Mapping):
        assert isinstance(value, Hashable)
        return value
    # Python holds 1, 1.0 and True for equal, rules do not.
    return repr(list(value.items()) if keys is None else [(key, value[key]) for key in keys if key in value])


def _keys(exprs: Sequence[TypedExpr], view: str, field: str) -> tuple[str, ...] | None:
    views = (view, "DeviceGrant") if field == "attributes" else (view,)
    found = [keys_read(exprs, each, field) for each in views]
    return None if None in found else tuple(sorted({key for keys in found if keys for key in keys}))


def fields_read(expr: TypedExpr, visited: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the fields in which nodes or cards of one shape may differ, as `View.field`; `ANY` where a card
    or node as a whole is passed on. `visited` are the slots of cards whose tenants are visited.

    A comparison of two names is no such field.
    """
    own = visited
    match expr:
        case CallOf(function="_==_" | "_!=_", args=(FieldOf() as one, FieldOf() as other)) if {
            name_of(one),
            name_of(other),
        } <= NAMES:
            for each in (one, other):
                yield from fields_read(each.operand, visited)
            return
        case FieldOf() | HasField() if (name := name_of(expr)) in _READ:
            if isinstance(expr.operand, Var) and expr.operand.slot in visited and name in _CARD:
                name = _USED + name
            # The text of an allocation holds names.
            yield "Device.id" if name == "DeviceAllocation.text" else name
        case CallFn() if hands_over(expr.args):
            yield ANY
        case CallOf() if expr.function not in _PASSES and hands_over(expr.args):
            yield ANY
        case ListOf() | MapOf() if hands_over(children(expr)):
            yield ANY
        case Comprehension(iterable=FieldOf(operand=Var(slot=slot), view="Device", field="tenants")):
            own = visited | {slot}
        case _:
            pass
    for part in children(expr):
        yield from fields_read(part, own)


def name_of(field: FieldOf | HasField) -> str:
    return f"{field.view}.{field.field}"


def hands_over(values: Sequence[TypedExpr], views: frozenset[str] = VIEWS) -> bool:
    """Return whether some values are cards or nodes, or hold some."""
    return any(_mentions(value.type, views) for value in values)


def _mentions(type_: Type, views: frozenset[str]) -> bool:
    return type_.name in views or any(_mentions(each, views) for each in type_.args)

"""The reads of devices: fields of pods, keys of maps, and slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from kdsl.base.by_identity import ByIdentity
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import CallOf, Const, FieldOf, HasField, KeyOf, TypedExpr, Var
from kdsl.eval.views import attribute_of

_POD: Final = "DevicePod"
POD_FIELDS: Final = frozenset(
    ("name", "namespace", "uid", "labels", "annotations", "runtimeClass", "requests")
)
"""The fields of the view but for the containers, which always count."""

MOST_EXPRS: Final = 2048
"""The most expressions whose parts are kept: the device rules of a profile have about 700, and compiling them
asks about each several times.
"""


def attributes_read(exprs: Iterable[TypedExpr]) -> frozenset[str]:
    """Return the attributes of `DevicePod` that expressions read, except for containers."""
    found: set[str] = set()
    for expr in exprs:
        direct = 0
        for part in parts(expr):
            if isinstance(part, FieldOf | HasField) and part.view == _POD:
                found.add(part.field)
                direct += isinstance(part.operand, Var)
            elif isinstance(part, Var) and part.type.name == _POD:
                direct -= 1
        if direct < 0:
            # A function gets the pod as a whole and may read any field.
            found |= POD_FIELDS
    return frozenset(map(attribute_of, found & POD_FIELDS))


def parts(*exprs: TypedExpr) -> Iterable[TypedExpr]:
    """Return expressions with all their parts."""
    return chain.from_iterable(map(_PARTS.of, exprs))


_PARTS: Final = ByIdentity[TypedExpr, tuple[TypedExpr, ...]](lambda expr: tuple(walk(expr)), MOST_EXPRS)


def keys_read(exprs: Iterable[TypedExpr], view: str, field: str) -> frozenset[str] | None:
    """Return the keys that expressions read of a map field of a view; None if they may read any."""
    keys = frozenset(key for expr in exprs for key in _keys(expr, view, field))
    return None if None in keys else frozenset(key for key in keys if key is not None)


def _keys(expr: TypedExpr, view: str, field: str) -> Iterator[str | None]:
    match expr:
        case (
            CallOf(function="_[_]" | "_[?_]", args=(FieldOf() as read, Const(value=str(key))))
            | CallOf(function="@in", args=(Const(value=str(key)), FieldOf() as read))
            | KeyOf(operand=FieldOf() as read, key=key)
        ) if (read.view, read.field) == (view, field):
            yield key
            if not isinstance(read.operand, Var):
                yield from _keys(read.operand, view, field)
        case FieldOf(operand=Var()) if expr.view == view and expr.field != field:
            pass
        case FieldOf() | Var() if expr.type.name == view or (
            isinstance(expr, FieldOf) and (expr.view, expr.field) == (view, field)
        ):
            yield None
        case _:
            for part in children(expr):
                yield from _keys(part, view, field)


def needs(exprs: Iterable[TypedExpr], lets: Mapping[int, CheckedLet]) -> frozenset[int]:
    """Return the slots that expressions read, through `let`s too."""
    found: set[int] = set()
    pending = [*exprs]
    while pending:
        for part in parts(pending.pop()):
            if isinstance(part, Var) and part.slot not in found:
                found.add(part.slot)
                if part.slot in lets:
                    pending.append(lets[part.slot].value)
    return frozenset(found)

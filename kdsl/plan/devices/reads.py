"""The reads of devices: fields of pods, keys of maps, and slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from kdsl.base.by_identity import ByIdentity
from kdsl.check.model.rule_set import CheckedLet
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallOf, Const, FieldOf, HasField, KeyOf, Typed, TypedExpr, Var

_POD: Final = "DevicePod"
_ATTRIBUTES: Final = {
    "name": "name",
    "namespace": "namespace",
    "uid": "uid",
    "labels": "labels",
    "annotations": "annotations",
    "runtimeClass": "runtime_class",
    "requests": "requests",
}
"""Fields of the view and their names in `DevicePod`; containers always count."""

MOST_SECTIONS: Final = 2048
"""The most sections whose expressions are kept: the device rules of a profile have about 700, and compiling
them asks about each several times.
"""


def attributes_read(sections: Iterable[object]) -> frozenset[str]:
    """Return the attributes of `DevicePod` that checked sections read, except for containers."""
    found: set[str] = set()
    for section in sections:
        direct = 0
        for part in parts(section):
            if isinstance(part, FieldOf | HasField) and part.view == _POD:
                found.add(part.field)
                direct += isinstance(part.operand, Var)
            elif isinstance(part, Var) and part.type.name == _POD:
                direct -= 1
        if direct < 0:
            # A function gets the pod as a whole and may read any field.
            found |= set(_ATTRIBUTES)
    return frozenset(_ATTRIBUTES[name] for name in found if name in _ATTRIBUTES)


def parts(value: object) -> Iterable[Typed]:
    """Return every expression inside a checked section, but not the names that the engine fills."""
    if isinstance(value, tuple | list):
        return chain.from_iterable(map(parts, value))
    return _PARTS.of(value)


def _walk(value: object) -> Iterator[Typed]:
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Typed):
            yield each
        if isinstance(each, tuple | list):
            pending += reversed(each)
        elif isinstance(each, Mapping):
            pending += reversed(list(each.values()))
        else:
            kind: Any = type(each)
            pending += [getattr(each, name) for name in _names(kind)]


_OTHERS: Final = frozenset(("scope", "span", "type", "time", "reads"))
"""Fields of checked records in which no expression is."""
_PARTS: Final = ByIdentity[object, tuple[Typed, ...]](lambda section: tuple(_walk(section)), MOST_SECTIONS)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class in which expressions are, last first."""
    if not is_dataclass(kind):
        return ()
    return tuple(each.name for each in reversed(fields(kind)) if each.name not in _OTHERS)


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


def needs(section: object, lets: Mapping[int, CheckedLet]) -> frozenset[int]:
    """Return the slots that a section reads, through `let`s too."""
    found: set[int] = set()
    pending = [section]
    while pending:
        for part in parts(pending.pop()):
            if isinstance(part, Var) and part.slot not in found:
                found.add(part.slot)
                if part.slot in lets:
                    pending.append(lets[part.slot].value)
    return frozenset(found)

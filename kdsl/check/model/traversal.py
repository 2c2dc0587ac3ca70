"""Traversal of checked expressions, for analyses of all expressions of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    FieldOf,
    HasField,
    KeyOf,
    ListOf,
    MapOf,
    Typed,
    TypedExpr,
    Var,
)


def children(expr: TypedExpr) -> tuple[TypedExpr, ...]:
    """Return the direct parts of an expression in source order; variables that it binds are not parts."""
    of_kind = _PARTS.get(expr.__class__)
    return () if of_kind is None else of_kind(expr)


# A table is much faster than matching classes. Constants and variables have no parts.
_PARTS: Final[Mapping[type, Callable[[Any], tuple[TypedExpr, ...]]]] = {
    FieldOf: lambda expr: (expr.operand,),
    HasField: lambda expr: (expr.operand,),
    KeyOf: lambda expr: (expr.operand,),
    CallOf: lambda expr: expr.args,
    CallFn: lambda expr: expr.args,
    ListOf: lambda expr: tuple([item.value for item in expr.items]),
    MapOf: lambda expr: tuple([part for entry in expr.entries for part in (entry.key, entry.value)]),
    Comprehension: lambda expr: (
        (expr.iterable, expr.body) if expr.where is None else (expr.iterable, expr.where, expr.body)
    ),
    Bind: lambda expr: (expr.value, expr.body),
    Aggregate: lambda expr: (expr.target, expr.body),
}


def walk(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the expression and all its parts, outer parts first."""
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        pending += reversed(children(part))


def expressions_of(part: object) -> Iterator[TypedExpr]:
    """Yield the expressions in a part of the checked model, by the order of fields, without their parts."""
    if isinstance(part, Typed):
        yield part  # type: ignore[misc]  # every node is one of TypedExpr
    elif isinstance(part, tuple | list):
        for each in part:
            yield from expressions_of(each)
    elif isinstance(part, Mapping):
        yield from expressions_of(list(part.values()))
    elif is_dataclass(part):
        for each in fields(part):
            if each.compare:
                yield from expressions_of(getattr(part, each.name))


def frame_size(expr: TypedExpr) -> int:
    """Return the number of slots that a frame needs for the variables that the expression reads or binds."""
    slots = [-1]
    for part in walk(expr):
        match part:
            case Var(slot=slot):
                slots.append(slot)
            case Comprehension(variables=variables):
                slots += [variable.slot for variable in variables]
            case Bind(variable=variable) | Aggregate(variable=variable):
                slots.append(variable.slot)
            case _:
                pass
    return max(slots) + 1

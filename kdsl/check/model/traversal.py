"""Traversal of checked expressions, for analyses of all expressions of a kind."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    ListOf,
    MapOf,
    TypedExpr,
    Var,
)


def children(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the direct parts of an expression in source order; variables that it binds are not parts."""
    match expr:
        case Const() | Var():
            return
        case FieldOf(operand=operand) | HasField(operand=operand) | KeyOf(operand=operand):
            yield operand
        case CallOf(args=args) | CallFn(args=args):
            yield from args
        case ListOf(items=items):
            yield from (item.value for item in items)
        case MapOf(entries=entries):
            for entry in entries:
                yield entry.key
                yield entry.value
        case Comprehension(iterable=iterable, where=where, body=body):
            yield iterable
            if where is not None:
                yield where
            yield body
        case Bind(value=value, body=body) | Aggregate(target=value, body=body):
            yield value
            yield body


def walk(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the expression and all its parts, outer parts first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


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

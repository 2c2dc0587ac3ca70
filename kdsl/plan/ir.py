"""What the passes add to checked expressions, and the walks they share.

A plan has no second tree: the passes rewrite `kdsl.check.typed` into itself. `Known` is the only new node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Final

from kdsl.check.typed import (
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
    TypedEntry,
    TypedExpr,
    TypedItem,
    Var,
)
from kdsl.check.types import Type
from kdsl.check.walk import walk
from kdsl.plan.values import Value


@dataclass(frozen=True, slots=True)
class Known(Const):
    """A constant that was computed: of any type, quantities, lists and maps included."""

    value: Value


_ELSEWHERE: Final = frozenset(("span", "time", "reads"))
"""What is known of an expression by where it stands."""


def map_children(expr: TypedExpr, change: Callable[[TypedExpr], TypedExpr]) -> TypedExpr:
    """Return the expression with `change` applied to each of its direct parts."""
    match expr:
        case Const() | Var():
            return expr
        case FieldOf(operand=operand) | HasField(operand=operand) | KeyOf(operand=operand):
            return replace(expr, operand=change(operand))
        case CallOf(args=args) | CallFn(args=args):
            return replace(expr, args=tuple(map(change, args)))
        case ListOf(items=items):
            return replace(expr, items=tuple(TypedItem(change(item.value), item.optional) for item in items))
        case MapOf(entries=entries):
            changed = (TypedEntry(change(each.key), change(each.value), each.optional) for each in entries)
            return replace(expr, entries=tuple(changed))
        case Comprehension(iterable=iterable, where=where, body=body):
            condition = None if where is None else change(where)
            return replace(expr, iterable=change(iterable), where=condition, body=change(body))
        case Aggregate(target=target, body=body):
            return replace(expr, target=change(target), body=change(body))
        case Bind(value=value, body=body):
            return replace(expr, value=change(value), body=change(body))


def operands(expr: CallOf) -> list[TypedExpr]:
    """List the operands of `a && b && …`, however they are grouped."""
    found: list[TypedExpr] = []
    pending = list(reversed(expr.args))
    while pending:
        operand = pending.pop()
        if isinstance(operand, CallOf) and operand.function == expr.function:
            pending += reversed(operand.args)
        else:
            found.append(operand)
    return found


def shape(expr: object, places: dict[int, int]) -> Hashable:
    """Return what is equal for expressions that differ in nothing but where they stand and in the slots of
    their variables; `places` numbers those in the order in which they come.
    """
    if isinstance(expr, Var):
        return ("Var", expr.type, places.setdefault(expr.slot, len(places)))
    if isinstance(expr, tuple):
        return tuple([shape(each, places) for each in expr])
    if isinstance(expr, Const):
        # Values that are equal in Python may be of several types.
        return ("Const", expr.type, repr(expr.value))
    if not is_dataclass(expr) or isinstance(expr, Type):
        found: Hashable = expr
        return found
    parts = [shape(getattr(expr, each.name), places) for each in fields(expr) if each.name not in _ELSEWHERE]
    return (expr.__class__.__name__, *parts)


def free_slots(*exprs: TypedExpr | None) -> frozenset[int]:
    """Return the slots that expressions read and do not bind themselves."""
    read: set[int] = set()
    bound: set[int] = set()
    for expr in exprs:
        for part in walk(expr) if expr is not None else ():
            match part:
                case Var(slot=slot):
                    read.add(slot)
                case Comprehension(variables=variables):
                    bound.update(variable.slot for variable in variables)
                case Bind(variable=variable) | Aggregate(variable=variable):
                    bound.add(variable.slot)
                case _:
                    pass
    # INVARIANT: no two variables of a rule share a slot, so a bound slot is read nowhere outside its binder.
    return frozenset(read - bound)

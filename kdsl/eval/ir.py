"""Additions of the passes to checked expressions, and shared walks.

There is no second tree: the passes rewrite `kdsl.check.model.typed` into itself. `Known` is the only new
node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from operator import is_
from typing import Any, Final

from kdsl.check.model.traversal import children, walk
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
    TypedEntry,
    TypedExpr,
    TypedItem,
    Var,
)
from kdsl.check.model.types import STRING, BindingTime, Type
from kdsl.eval.values import Value


@dataclass(frozen=True, slots=True)
class Known(Const):
    """A constant that was computed: of any type, quantities, lists and maps included."""

    value: Value

    @staticmethod
    def of(expr: TypedExpr, value: Value) -> Known:
        """Return a value in place of `expr`."""
        return Known(
            type=expr.type,
            time=BindingTime.STATIC,
            reads=frozenset(),
            span=expr.span,
            value=value,
        )


def bound(variable: Var, value: TypedExpr, body: TypedExpr) -> Bind:
    """Return `body`, with its binding time and reads, in which a variable has a value."""
    return Bind(variable, value, body, type=body.type, time=body.time, reads=body.reads, span=body.span)


_ELSEWHERE: Final = frozenset(("span", "time", "reads"))
"""The attributes of an expression that depend on its place."""


def map_children(expr: TypedExpr, change: Callable[[TypedExpr], TypedExpr]) -> TypedExpr:
    """Return the expression with `change` applied to each direct part; itself if none changes."""
    match expr:
        case Const() | Var():
            return expr
        case FieldOf(operand=operand) | HasField(operand=operand) | KeyOf(operand=operand):
            changed = change(operand)
            return expr if changed is operand else replace(expr, operand=changed)
        case CallOf(args=args) | CallFn(args=args):
            new = tuple(map(change, args))
            return expr if all(map(is_, new, args)) else replace(expr, args=new)
        case ListOf(items=items):
            return replace(expr, items=tuple(TypedItem(change(item.value), item.optional) for item in items))
        case MapOf(entries=entries):
            pairs = (TypedEntry(change(each.key), change(each.value), each.optional) for each in entries)
            return replace(expr, entries=tuple(pairs))
        case Comprehension(iterable=iterable, where=where, body=body):
            condition = None if where is None else change(where)
            ranged, result = change(iterable), change(body)
            if ranged is iterable and condition is where and result is body:
                return expr
            return replace(expr, iterable=ranged, where=condition, body=result)
        case Aggregate(target=target, body=body):
            counted, result = change(target), change(body)
            if counted is target and result is body:
                return expr
            return replace(expr, target=counted, body=result)
        case Bind(value=value, body=body):
            bound, result = change(value), change(body)
            return expr if bound is value and result is body else replace(expr, value=bound, body=result)


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


def looked_up(expr: TypedExpr) -> tuple[TypedExpr, TypedExpr] | None:
    """Return the map and the key of `map[key]`, `map[?key]`, `key in map`, `map.key` and `has(map.key)`."""
    match expr:
        case KeyOf(operand=table, key=name):
            return table, Const(
                type=STRING, time=BindingTime.STATIC, reads=frozenset(), span=expr.span, value=name
            )
        case CallOf(overload="in_map", args=(key, table)):
            return table, key
        case CallOf(overload="index_map" | "map_optindex_optional_value", args=(table, key)):
            return table, key
    return None


def is_test(expr: TypedExpr) -> bool:
    """Return whether an expression that is `looked_up` only tests whether the map has the key."""
    return expr.test if isinstance(expr, KeyOf) else isinstance(expr, CallOf) and expr.overload == "in_map"


def fields_of(expr: TypedExpr, slot: int) -> list[FieldOf | HasField] | None:
    """Return the fields that an expression reads of a variable, or tests; None for any other use of it."""
    parts = tuple(walk(expr))
    used = sum([isinstance(part, Var) and part.slot == slot for part in parts])
    fields = [part for part in parts if isinstance(part, FieldOf | HasField)]
    read = [each for each in fields if isinstance(each.operand, Var) and each.operand.slot == slot]
    return read if len(read) == used else None


def shape(expr: object, places: dict[int, int]) -> Hashable:
    """Return a key that is equal for expressions that differ only in place and in the slots of their
    variables; `places` numbers the slots in order of occurrence.
    """
    if isinstance(expr, Var):
        return ("Var", expr.type, places.setdefault(expr.slot, len(places)))
    if isinstance(expr, tuple):
        return tuple([shape(each, places) for each in expr])
    if isinstance(expr, Const):
        return ("Const", expr.type, _constant_key(expr.value))
    kind: Any = expr.__class__
    names = _part_names(kind)
    if names is None:
        found: Hashable = expr
        return found
    return (kind.__name__, *[shape(getattr(expr, name), places) for name in names])


@cache
def _part_names(kind: type) -> tuple[str, ...] | None:
    """Return the fields by which expressions of a class differ in shape; None for a class of values."""
    if not is_dataclass(kind) or issubclass(kind, Type):
        return None
    return tuple([each.name for each in fields(kind) if each.name not in _ELSEWHERE])


class _Itself:
    """A value that equals only itself."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


_PLAIN: Final = frozenset({bool, int, float, str, bytes, type(None)})


def _constant_key(value: Value) -> Hashable:
    """Return a key that is equal for equal constants of one type, if possible."""
    if value.__class__ in _PLAIN:
        # Values of different types may be equal in Python.
        return repr(value)
    if value.__class__ in (tuple, list):
        return tuple(map(_constant_key, value))
    found: Hashable = value if isinstance(value, Type) else _Itself(value)
    return found


def is_constant(expr: TypedExpr) -> bool:
    """Return whether an expression reads nothing: no pod, node or variable."""
    return expr.time is BindingTime.STATIC and not free_slots(expr)


def free_variables(expr: TypedExpr) -> dict[int, Var]:
    """Return the variables that an expression reads and does not bind itself, by slot."""
    free = free_slots(expr)
    return {part.slot: part for part in walk(expr) if isinstance(part, Var) and part.slot in free}


def free_slots(*exprs: TypedExpr | None) -> frozenset[int]:
    """Return the slots that expressions read and do not bind themselves."""
    read: set[int] = set()
    bound: set[int] = set()
    pending = [expr for expr in exprs if expr is not None]
    while pending:
        part = pending.pop()
        if isinstance(part, Var):
            read.add(part.slot)
            continue
        if isinstance(part, Comprehension):
            bound.update([variable.slot for variable in part.variables])
        elif isinstance(part, Bind) or isinstance(part, Aggregate):  # noqa: SIM101 - the hot path
            bound.add(part.variable.slot)
        pending += children(part)
    # INVARIANT: no two variables of a rule share a slot, so a bound slot is read nowhere outside its binder.
    return frozenset(read - bound)

"""The order in which parts of an expression fail: of two errors, rules report the first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kdsl.check.model.typed import (
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    TypedExpr,
    Var,
)
from kdsl.plan.compile.passes.inline import is_plain

_ABSORBING: Final = ("_&&_", "_||_")
_FIRST_ONLY: Final = ("_?_:_", "or", "orValue")
"""Functions that always evaluate only their first argument."""
_SURE: Final = frozenset(
    {
        *("TopologyCount.here", "TopologyCount.least", "TopologyCount.total", "TopologyCount.domains"),
        *("PodTermCount.here", "PodTermCount.total"),
    }
)
"""Functions that never fail."""


def asks_first(expr: TypedExpr, slot: int) -> bool:
    """Return whether an expression reads a variable before any failing part, and fails with it."""
    match expr:
        case Var():
            return expr.slot == slot
        case FieldOf(operand=operand) | HasField(operand=operand) | KeyOf(operand=operand):
            return asks_first(operand, slot)
        case Comprehension(iterable=iterable):
            return asks_first(iterable, slot)
        case CallOf(function=function, args=(first, *_)) if function in _FIRST_ONLY:
            return asks_first(first, slot)
        case CallOf(args=args) | CallFn(args=args) if not (
            isinstance(expr, CallOf) and expr.function in _ABSORBING
        ):
            first_asked = next((arg for arg in args if not isinstance(arg, Const)), None)
            return first_asked is not None and asks_first(first_asked, slot)
    return False


def fails_only_with(expr: TypedExpr, slot: int, named: Collection[int]) -> bool:
    """Return whether an expression fails exactly if a variable fails, with the same error. `named` are
    variables that always have a value.
    """
    match expr:
        case Var():
            return expr.slot == slot
        case FieldOf(operand=operand) | HasField(operand=operand):
            return fails_only_with(operand, slot, named)
        case CallOf(function=function, args=(first, *others)) if function in _SURE:
            return fails_only_with(first, slot, named) and all(is_plain(each, named) for each in others)
    return False

"""Conditions that cannot hold together: they leave an expression no range, no choice or no order.

Conditions are split into cases (their disjunctive normal form). A case that leaves an expression without a
value is impossible. Sound rather than sharp: a condition that is not understood is a fact of its own, and too
many cases are treated as none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from math import inf
from typing import Final

from kdsl.check.model.typed import CallOf, Const, ListOf, TypedExpr, Var
from kdsl.check.model.types import BOOL, INT, UINT

Range = tuple[int | float, int | float]

MOST: Final = 64
"""The largest number of conditions, cases, and facts in one case."""

_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


_Ranges = tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """The possible values: one of `values`, or any other."""

    values: frozenset[object]
    is_none_of: bool = False

    def __and__(self, other: _Choice) -> _Choice:
        if self.is_none_of and other.is_none_of:
            return _Choice(self.values | other.values, is_none_of=True)
        if self.is_none_of:
            return _Choice(other.values - self.values)
        return _Choice(self.values - other.values if other.is_none_of else self.values & other.values)

    def __bool__(self) -> bool:
        return self.is_none_of or bool(self.values)


_Case = Mapping[Hashable, _Ranges | _Choice]
"""The possible values of each subject. The subject of an order is a pair; its value is the sign of the
difference.
"""


Known = dict[tuple[int, bool], tuple[TypedExpr, list[_Case] | None]]


@dataclass(frozen=True, slots=True)
class Cases:
    """Finds impossible cases, with the `let`s of a rule by slot, and the `bounds` of its whole numbers.

    `known` keeps the cases of the conditions of the rule, each with the condition, whose id is its key.
    """

    lets: Mapping[int, TypedExpr]
    bounds: Callable[[TypedExpr], Range | None]
    known: Known

    def exclude(self, conditions: Iterable[tuple[TypedExpr, bool]]) -> int | None:
        """Return how many of the conditions, from the first on, can never all have their given truth values;
        None where they can. Of many only the first `MOST` are used.
        """
        cases: list[_Case] = [{}]
        for count, (condition, truth) in enumerate(islice(conditions, MOST), start=1):
            key = (id(condition), truth)
            if key not in self.known:
                self.known[key] = condition, self._cases(condition, truth)
            more = _joined(cases, self.known[key][1])
            # A condition with too many cases is left out: the others then exclude less, but nothing wrongly.
            cases = cases if more is None else more
            if not cases:
                return count
        return None

    def _cases(self, expr: TypedExpr, truth: bool) -> list[_Case] | None:
        """Return the cases in which a condition has this truth; None where there are too many."""
        match expr:
            case Const(value=bool() as value):
                return [{}] if value is truth else []
            case Var(slot=slot) if slot in self.lets:
                return self._cases(self.lets[slot], truth)
            case CallOf(function="!_", args=(operand,)):
                return self._cases(operand, not truth)
            case CallOf(function=("_&&_" | "_||_") as function, args=(left, right)):
                sides = (self._cases(left, truth), self._cases(right, truth))
                return _joined(*sides) if (function == "_&&_") is truth else _either(*sides)
            case CallOf(function="_?_:_", args=(condition, then, otherwise)):
                return _either(
                    _joined(self._cases(condition, True), self._cases(then, truth)),
                    _joined(self._cases(condition, False), self._cases(otherwise, truth)),
                )
        subject, allowed = self._fact(expr, truth)
        return [{subject: allowed}] if allowed else []

    def _fact(self, expr: TypedExpr, truth: bool) -> tuple[Hashable, _Ranges | _Choice]:
        """Return the subject of a condition, and the values that the condition leaves it."""
        match expr:
            case CallOf(function="@in", args=(subject, ListOf(items=items))) if items:
                consts = [item.value for item in items if isinstance(item.value, Const) and not item.optional]
                if len(consts) == len(items) and all(each.type == subject.type for each in consts):
                    return self._choice(subject, frozenset(each.value for each in consts), truth)
            case CallOf(function=function, args=(left, right)) if function.strip("_") in _NEGATED:
                operator = function.strip("_")
                return self._comparison(expr, operator if truth else _NEGATED[operator], left, right, truth)
        return expr, _Choice(frozenset({truth}))

    def _comparison(
        self, expr: TypedExpr, operator: str, left: TypedExpr, right: TypedExpr, truth: bool
    ) -> tuple[Hashable, _Ranges | _Choice]:
        left, right = self._resolved(left), self._resolved(right)
        if isinstance(left, Const):
            left, right, operator = right, left, _FLIPPED[operator]
        if left.type != right.type or any(name in str(left.type) for name in ("double", "dyn")):
            return expr, _Choice(frozenset({truth}))
        if isinstance(right, Const) and left.type in (INT, UINT) and isinstance(right.value, int):
            return left, _within(_ranges(operator, right.value), self.bounds(left))
        if isinstance(right, Const) and operator in ("==", "!="):
            return self._choice(left, frozenset({right.value}), operator == "==")
        return (left, right), _meet(_ranges(operator, 0), ((-1, 1),))

    def _choice(
        self, subject: TypedExpr, values: frozenset[object], is_one: bool
    ) -> tuple[Hashable, _Ranges | _Choice]:
        subject = self._resolved(subject)
        if subject.type not in (INT, UINT):
            # A bool is a fact by itself, so its comparison with a constant must not be another fact.
            if subject.type == BOOL and not is_one:
                return subject, _Choice(frozenset({True, False}) - values)
            return subject, _Choice(values, is_none_of=not is_one)
        ranges: _Ranges = ((-inf, inf),)
        points = sorted(value for value in values if isinstance(value, int))
        if is_one:
            ranges = tuple((point, point) for point in points)
        for point in () if is_one else points:
            ranges = _meet(ranges, _ranges("!=", point))
        return subject, _within(ranges, self.bounds(subject))

    def _resolved(self, expr: TypedExpr) -> TypedExpr:
        while isinstance(expr, Var) and expr.slot in self.lets:
            expr = self.lets[expr.slot]
        return expr


def _joined(one: list[_Case] | None, other: list[_Case] | None) -> list[_Case] | None:
    """Return the possible combinations of both lists of cases."""
    if one is None or other is None or len(one) * len(other) > MOST:
        return None
    found = [_together(left, right) for left, right in product(one, other)]
    return (
        None
        if any(case and len(case) > MOST for case in found)
        else [case for case in found if case is not None]
    )


def _together(one: _Case, other: _Case) -> _Case | None:
    """Return the combination of two cases; None where it is impossible."""
    found = dict(one)
    for subject, allowed in other.items():
        if isinstance(subject, tuple) and subject[::-1] in found and isinstance(allowed, tuple):
            subject, allowed = subject[::-1], tuple((-high, -low) for low, high in reversed(allowed))
        known = found.get(subject)
        match known, allowed:
            case tuple(), tuple():
                left: _Ranges | _Choice = _meet(known, allowed)
            case _Choice(), _Choice():
                left = known & allowed
            case _:
                left = allowed
        if not left:
            return None
        found[subject] = left
    return found


def _either(one: list[_Case] | None, other: list[_Case] | None) -> list[_Case] | None:
    if one is None or other is None or len(one) + len(other) > MOST:
        return None
    return [*one, *other]


def _ranges(operator: str, value: int) -> _Ranges:
    """Return the whole numbers that compare like this with `value`."""
    match operator:
        case "<":
            return ((-inf, value - 1),)
        case "<=":
            return ((-inf, value),)
        case ">":
            return ((value + 1, inf),)
        case ">=":
            return ((value, inf),)
        case "==":
            return ((value, value),)
        case _:
            return ((-inf, value - 1), (value + 1, inf))


def _within(ranges: _Ranges, bounds: Range | None) -> _Ranges:
    return ranges if bounds is None else _meet(ranges, (bounds,))


def _meet(one: _Ranges, other: _Ranges) -> _Ranges:
    """Return the intersection of two lists of ranges."""
    found = ((max(left[0], right[0]), min(left[1], right[1])) for left in one for right in other)
    return tuple((low, high) for low, high in found if low <= high)

"""The values that an expression can have, without running the rule: intervals of whole numbers, and truth.

Sound rather than sharp: `None` where nothing is certain, and only for expressions that have a value at all
(an error is no answer). Doubles are followed as constants only, since a NaN is outside any interval.
Parameters of rules are unknown: a profile may set them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kdsl.base.quantity import divide_toward_zero
from kdsl.check.lints.cases import MOST, Cases, Known
from kdsl.check.lints.lint import lets
from kdsl.check.model.rule_set import WrittenRule
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, Bind, CallOf, Const, ListOf, TypedExpr, Var
from kdsl.check.model.types import BOOL, DOUBLE, INT, UINT, Type
from kdsl.check.rules.ranges import INT64, Range, combined, extreme

_WHOLE: dict[Type, Range] = {INT: INT64, UINT: (0, 2**64 - 1)}
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_", "-_"})
_COMPARISONS = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"})
_HOLDS_FOR_EQUALS = {"_==_": True, "_<=_": True, "_>=_": True, "_!=_": False, "_<_": False, "_>_": False}


class HasCondition(Protocol):
    """An object whose condition is known to hold."""

    @property
    def condition(self) -> TypedExpr: ...


Held = TypeVar("Held", bound=HasCondition)


@dataclass(frozen=True, slots=True)
class Certain:
    """The certain values of the expressions of one rule. `lets` are the values of variables by slot.

    Each `let` is analysed once, however often it is used.
    """

    lets: dict[int, TypedExpr]
    _bounds: dict[int, Range | None] = field(default_factory=dict)
    _truth: dict[int, bool | None] = field(default_factory=dict)
    _sides_of: dict[int, tuple[TypedExpr, bool | None]] = field(default_factory=dict)
    _known: Known = field(default_factory=dict)

    @staticmethod
    def of(rule: WrittenRule) -> Certain:
        """Return the certain values for a rule, with its `let`s."""
        return Certain({let.variable.slot: let.value for let in lets(rule)})

    def bounds(self, expr: TypedExpr) -> Range | None:
        """Return the least and the greatest number that the expression may be; None where it is no number."""
        match expr:
            case Const(value=bool()):
                return None
            case Const(value=int() | float() as value) if value == value:
                return (value, value)
            case Var(slot=slot) if slot in self.lets:
                if slot not in self._bounds:
                    self._bounds[slot] = self.bounds(self.lets[slot])
                return self._bounds[slot]
            case Bind(macro="bind", variable=variable, value=value, body=body):
                return Certain({**self.lets, variable.slot: value}).bounds(body)
            case CallOf(function="_?_:_", args=(condition, then, otherwise)):
                return self._either(condition, then, otherwise)
            case CallOf():
                found = self._call(expr)
            case _:
                found = None
        whole = _WHOLE.get(expr.type)
        if found is None or whole is None:
            return whole
        # A result beyond int64 or uint64 is an error.
        return (max(found[0], whole[0]), min(found[1], whole[1]))

    def truth(self, expr: TypedExpr) -> bool | None:
        """Return whether a condition always holds or never does; None where it depends."""
        match expr:
            case Const(value=bool() as value):
                return value
            case Var(slot=slot) if slot in self.lets:
                if slot not in self._truth:
                    self._truth[slot] = self.truth(self.lets[slot])
                return self._truth[slot]
            case CallOf(function="!_", args=(operand,)):
                inner = self.truth(operand)
                return None if inner is None else not inner
            case CallOf(function=("_&&_" | "_||_") as function, args=(left, right)):
                decisive = function == "_||_"
                sides = (self.truth(left), self.truth(right))
                if decisive in sides:
                    return decisive
                return not decisive if None not in sides else self._sides(expr)
            case CallOf(function="@in", args=(_, ListOf(items=()))):
                return False
            case CallOf(function=function, args=(left, right)) if function in _COMPARISONS:
                return self._comparison(function, left, right)
        return None

    def decided(self, condition: TypedExpr) -> Iterator[tuple[TypedExpr, bool]]:
        """Yield the largest parts of a condition that are always true or always false."""
        truth = self.truth(condition)
        if truth is not None:
            yield condition, truth
            return
        match condition:
            case CallOf(function="_&&_" | "_||_" | "!_", args=args):
                for arg in args:
                    yield from self.decided(arg)
            case _:
                pass

    def excludes(self, conditions: Iterable[tuple[TypedExpr, bool]]) -> bool:
        """Return whether the conditions can never all have their given truth values."""
        return Cases(self.lets, self.bounds, self._known).exclude(conditions) is not None

    def reasons(self, conditions: Sequence[TypedExpr], before: Sequence[Held]) -> list[Held]:
        """Return the parts of `before` from which all of the conditions follow: as few and as late as
        possible; empty where they do not follow. Only the last of `before` are used.
        """
        cases = Cases(self.lets, self.bounds, self._known)
        found: list[Held] = []
        rest = list(before[:-MOST:-1])
        while True:
            known = [(each.condition, True) for each in (*found, *rest)]
            counts = [cases.exclude([(condition, False), *known]) for condition in conditions]
            reached = [count - 1 for count in counts if count is not None]
            if len(reached) < len(counts):
                # With the reasons in front there may be too many cases to decide: all of these are still
                # enough.
                return [*found, *reversed(rest)] if found else []
            # INVARIANT: the last one reached is needed for `found`.
            last = max(reached, default=0) - len(found)
            if last <= 0:
                return found
            found.append(rest[last - 1])
            rest = rest[: last - 1]

    def _sides(self, expr: TypedExpr) -> bool | None:
        """Return the truth that the sides of `&&` or `||` imply together, computed once for each
        expression.
        """
        if id(expr) not in self._sides_of:
            never = self.excludes([(expr, True)])
            truth = False if never else True if self.excludes([(expr, False)]) else None
            self._sides_of[id(expr)] = expr, truth
        return self._sides_of[id(expr)][1]

    def _either(self, condition: TypedExpr, then: TypedExpr, otherwise: TypedExpr) -> Range | None:
        truth = self.truth(condition)
        if truth is not None:
            return self.bounds(then if truth else otherwise)
        one, other = self.bounds(then), self.bounds(otherwise)
        if one is None or other is None:
            return None
        return (min(one[0], other[0]), max(one[1], other[1]))

    def _call(self, expr: CallOf) -> Range | None:
        if expr.function == "size" or self._is_of_count(expr):
            return (0, 2**63 - 1)
        operands = [self.bounds(arg) for arg in expr.args]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands) or any(arg.type != expr.type for arg in expr.args):
            return None
        if expr.type == DOUBLE and any(low != high for low, high in known):
            return None
        if expr.function in _ARITHMETIC:
            return _arithmetic(expr, known)
        if expr.function in ("math.least", "math.greatest"):
            return extreme(expr.function, known)
        return None

    def _is_of_count(self, expr: CallOf) -> bool:
        """Return whether this is a number of a count, as `topology(key).count(p, …).here(node)` is."""
        counted = expr.args[0] if expr.member and expr.type == INT else None
        while isinstance(counted, Var) and counted.slot in self.lets:
            counted = self.lets[counted.slot]
        return isinstance(counted, Aggregate) and counted.macro == "count"

    def _comparison(self, function: str, left: TypedExpr, right: TypedExpr) -> bool | None:
        if left == right and _equals_itself(left):
            return _HOLDS_FOR_EQUALS[function]
        if isinstance(left, Const) and isinstance(right, Const) and left.type == right.type:
            is_equal = left.value == right.value
            if function in ("_==_", "_!=_"):
                return is_equal == (function == "_==_")
        one, other = self.bounds(left), self.bounds(right)
        return None if one is None or other is None else _compare(function, one, other)


def _equals_itself(expr: TypedExpr) -> bool:
    """Return whether a value of this type is always equal to itself; one that holds a NaN is not."""
    return not any(name in str(expr.type) for name in ("double", "dyn"))


def _compare(function: str, one: Range, other: Range) -> bool | None:
    if function in ("_>_", "_>=_"):
        return _compare(function.replace(">", "<"), other, one)
    if function == "_<_":
        return True if one[1] < other[0] else False if one[0] >= other[1] else None
    if function == "_<=_":
        return True if one[1] <= other[0] else False if one[0] > other[1] else None
    if one[1] < other[0] or other[1] < one[0]:
        return function == "_!=_"
    return function == "_==_" if one[0] == one[1] == other[0] == other[1] else None


def _arithmetic(expr: CallOf, operands: list[Range]) -> Range | None:
    if expr.function == "-_":
        return combined("_-_", (0, 0), *operands)
    (low, high), (least, most) = operands
    match expr.function:
        case "_+_" | "_-_" | "_*_":
            return combined(expr.function, (low, high), (least, most))
        case _ if expr.type == DOUBLE:
            return None if least == 0 else (low / least, low / least)
        case _ if least <= 0 <= most:
            size = max(abs(low), abs(high))
            return (0 if low >= 0 and least >= 0 else -size, size)
        case _:
            corners = [
                divide_toward_zero(int(one), int(other)) for one in (low, high) for other in (least, most)
            ]
    return (min(corners), max(corners))


def ternary_conditions(expr: TypedExpr) -> Iterator[TypedExpr]:
    """Yield the conditions of the `c ? a : b` in an expression."""
    for part in walk(expr):
        if isinstance(part, CallOf) and part.function == "_?_:_" and part.args[0].type == BOOL:
            yield part.args[0]

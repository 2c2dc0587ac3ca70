"""The range of a whole number: the least and the greatest value of sums and products whose parts have limits.

A sort key may be computed if its result is certain to stay within int64, as in
`int(pod.createdAt) - 60 * pod.priority`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.check.model.typed import CallOf, Const, FieldOf, TypedExpr, Var

Range = tuple[int | float, int | float]

INT64: Range = (-(2**63), 2**63 - 1)
# Kubernetes: the priority of a pod is a 32-bit integer.
_OF_FIELDS: dict[str, Range] = {"priority": (-(2**31), 2**31 - 1)}
# CEL: a time lies in the years 1 to 9999, here in seconds since 1970.
_OF_OVERLOADS: dict[str, Range] = {"timestamp_to_int64": (-62_135_596_800, 253_402_300_799)}
_OF_FUNCTIONS: dict[str, Range] = {"size": (0, 2**31)}


def combined(operator: str, one: Range, other: Range) -> Range:
    """Return the range of a sum, difference or product, not cut to int64."""
    match operator:
        case "_+_":
            return (one[0] + other[0], one[1] + other[1])
        case "_-_":
            return (one[0] - other[1], one[1] - other[0])
    corners = [left * right for left in one for right in other]
    return (min(corners), max(corners))


def extreme(function: str, ranges: Iterable[Range]) -> Range:
    """Return the range of `math.least` or `math.greatest` of values with these ranges."""
    choose = min if function == "math.least" else max
    lows, highs = zip(*ranges, strict=True)
    return (choose(lows), choose(highs))


def range_of(expr: TypedExpr, lets: Mapping[int, TypedExpr]) -> Range:
    """Return the range of an `int` expression that has a value; int64 where nothing else is certain."""
    low, high = _range_of(expr, lets)
    return (max(low, INT64[0]), min(high, INT64[1]))


def stays_in_range(expr: CallOf, lets: Mapping[int, TypedExpr]) -> bool:
    """Return whether a sum, difference, product or negative of `int`s never leaves int64."""
    low, high = _range_of(expr, lets)
    return INT64[0] <= low and high <= INT64[1]


def _range_of(expr: TypedExpr, lets: Mapping[int, TypedExpr]) -> Range:
    match expr:
        case Const(value=int() as value):
            return (value, value)
        case Var(slot=slot) if slot in lets:
            return range_of(lets[slot], lets)
        case FieldOf(field=field):
            return _OF_FIELDS.get(field, INT64)
        case CallOf(function="_+_" | "_-_" | "_*_" as operator, args=(left, right)):
            return combined(operator, range_of(left, lets), range_of(right, lets))
        case CallOf(function="-_", args=(operand,)):
            return combined("_-_", (0, 0), range_of(operand, lets))
        case CallOf(function="_?_:_", args=(_, then, otherwise)):
            one, other = range_of(then, lets), range_of(otherwise, lets)
            return (min(one[0], other[0]), max(one[1], other[1]))
        case CallOf(function="math.least" | "math.greatest" as function, args=args) if _are_numbers(args):
            return extreme(function, [range_of(arg, lets) for arg in args])
        case CallOf(function=function, overload=overload):
            return _OF_OVERLOADS.get(overload, _OF_FUNCTIONS.get(function, INT64))
    return INT64


def _are_numbers(args: tuple[TypedExpr, ...]) -> bool:
    """Return whether the arguments are `int`s, not one list of them."""
    return all(arg.type.name == "int" for arg in args)

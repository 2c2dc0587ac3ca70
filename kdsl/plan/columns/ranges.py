"""Bounds of the results of operations on arrays, given the bounds of their operands.

Checks that cannot fail within the bounds are left out: an amount of memory below a petabyte does not overflow
when another one is added.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from kdsl.eval.values import INT_MAX, INT_MIN

Bound: TypeAlias = int | float
Range: TypeAlias = tuple[Bound, Bound]
"""The least and the largest value of a number. Doubles with a range are never NaN."""

ALL_INTS: Final[Range] = (INT_MIN, INT_MAX)
EXACT: Final[Range] = (-(2**53) + 1, 2**53 - 1)
"""Integers that doubles represent exactly."""

Rule = Callable[..., Range | None]


def range_of(function: object, ranges: list[Range | None], is_double: bool) -> Range | None:
    """Return the range of exact results, None if unknown. Integers may be beyond int64."""
    rule = _RULES.get(function)
    if rule is None or None in ranges:
        return None
    found = rule(*ranges)
    if found is None or not is_double:
        return found
    # Rounding is monotonic, so the bounds hold for all values between them.
    return found if math.isfinite(found[0]) and math.isfinite(found[1]) else None


def is_within(found: Range | None, bounds: Range) -> bool:
    """Return whether a range is known to lie within bounds."""
    return found is not None and bounds[0] <= found[0] and found[1] <= bounds[1]


def decided(function: object, ranges: list[Range | None]) -> bool | None:
    """Return the result of a comparison if it is the same for all numbers of two ranges, else None."""
    compare = _COMPARISONS.get(function)
    if compare is None or None in ranges:
        return None
    one, other = ranges
    assert one is not None and other is not None
    if isinstance(one[0], float) is not isinstance(other[0], float):
        return None
    if compare is operator.eq or compare is operator.ne:
        is_one_number = one[0] == one[1] == other[0] == other[1]
        is_known = is_one_number or one[1] < other[0] or other[1] < one[0]
        return is_one_number is (compare is operator.eq) if is_known else None
    # An order holds for all numbers, or for none, if it does for the two pairs that are farthest apart.
    found: bool = compare(one[1], other[0])
    return found if compare(one[0], other[1]) is found else None


_COMPARISONS: Final[Mapping[object, Callable[[Any, Any], bool]]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}


def _corners(compute: Callable[[Any, Any], Bound], one: Range, other: Range) -> Range:
    found = [compute(left, right) for left, right in product(one, other)]
    return min(found), max(found)


def _absolute(one: Range) -> Range:
    least, largest = one
    return one if least >= 0 else (-largest, -least) if largest <= 0 else (0 * least, max(-least, largest))


def _by_positive(divide: Callable[[Any, Any], Bound]) -> Rule:
    """Return the rule of a division, for divisors that are known to be positive."""
    return lambda one, other: _corners(divide, one, other) if other[0] > 0 else None


def toward_zero(left: Any, right: Any) -> Any:
    """Divide integers, without the rest; `right` must be positive."""
    return (left - np.fmod(left, right)) // right


def toward_zero_exact(left: Any, right: Any) -> Any:
    """Do as `toward_zero`, in doubles, for integers within `EXACT`: no quotient is rounded to an integer."""
    return np.divide(left, right).astype(np.int64)


def _toward_zero(left: Any, right: Any) -> Bound:
    quotient: Bound = abs(left) // right
    return quotient if left >= 0 else -quotient


def _monotonic(compute: Callable[[Bound], Bound]) -> Rule:
    return lambda one: (compute(one[0]), compute(one[1]))


def to_int(values: Any) -> Any:
    """Convert to int64, toward zero."""
    return values.astype(np.int64)


def to_double(values: Any) -> Any:
    """Convert to float64."""
    return values.astype(np.float64)


_RULES: Final[Mapping[object, Rule]] = {
    np.add: lambda one, other: (one[0] + other[0], one[1] + other[1]),
    np.subtract: lambda one, other: (one[0] - other[1], one[1] - other[0]),
    np.multiply: partial(_corners, operator.mul),
    np.divide: _by_positive(operator.truediv),
    np.floor_divide: _by_positive(operator.floordiv),
    toward_zero: _by_positive(_toward_zero),
    np.negative: lambda one: (-one[1], -one[0]),
    np.absolute: _absolute,
    np.where: lambda one, other: (min(one[0], other[0]), max(one[1], other[1])),
    np.minimum: lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    np.maximum: lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    np.trunc: _monotonic(lambda bound: float(math.trunc(bound))),
    to_int: _monotonic(math.trunc),
    to_double: _monotonic(float),
}

"""Functions and operators over columns, by overload id.

Each returns the value of `kdsl.eval.functions` for every row that it does not mark as bad. Functions without
a kernel are evaluated per distinct value or row by row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from kdsl.base.quantity import NANOS_PER_UNIT, Quantity
from kdsl.base.resources import CPU, Resources
from kdsl.eval.values import INT_MAX, INT_MIN
from kdsl.plan.columns.column import (
    AllBad,
    Amounts,
    Array,
    Bad,
    Column,
    ColumnValue,
    Int64s,
    NotColumnar,
    ResourceTable,
    Same,
    either,
    operand,
    spread,
)
from kdsl.plan.columns.pod_inputs import InputQuantity
from kdsl.plan.columns.traced import is_exact, is_traced, least_of, quotient

Kernel = Callable[[int, list[ColumnValue]], ColumnValue]
"""Computes a call for a number of rows. At least one argument is not `Same`; numpy's warnings are off."""

Overflows = Callable[[Int64s, Int64s, Int64s], "Array | np.bool_"]
"""Returns where the result of an operation on two integers, the third, wrapped around."""

_EXACT: Final = 2**53  # up to here every int64 is a float64
_MILLI: Final = 1000

_NOWHERE: Final = np.False_
"""Marks no row."""


def _marked(mask: Array | np.bool_) -> Bad:
    """Return a mask; None if it marks no row. AllBad if it is known to mark all rows."""
    if isinstance(mask, np.generic):
        if mask:
            raise AllBad
        return None
    return mask if mask.any() else None


def _checked(values: Array, overflow: Array | np.bool_, *bads: Bad) -> Column:
    return Column(values, either(*bads, _marked(overflow)))


def _pair(args: Sequence[ColumnValue], dtype: Any) -> tuple[Array, Array, Bad]:
    (left, left_bad), (right, right_bad) = (operand(arg, dtype) for arg in args)
    return left, right, either(left_bad, right_bad)


def sum_overflows(left: Int64s, right: Int64s, total: Int64s) -> Array | np.bool_:
    """Return where `left + right` wrapped around: both have the sign that the total lacks."""
    return _NOWHERE if is_exact(total) else ((left ^ total) & (right ^ total)) < 0


def difference_overflows(left: Int64s, right: Int64s, rest: Int64s) -> Array | np.bool_:
    return _NOWHERE if is_exact(rest) else ((left ^ right) & (left ^ rest)) < 0


def product_overflows(left: Int64s, right: Int64s, product: Int64s) -> Array | np.bool_:
    """Return where a product may overflow, by its magnitude: slightly too often, never too seldom."""
    return _NOWHERE if is_exact(product) else np.abs(left * 1.0) * np.abs(right * 1.0) >= 2.0**62


def truncated_quotient(left: Int64s, right: Int64s) -> tuple[Int64s, Array | np.bool_]:
    """Divide toward zero; the second result marks divisors of zero and the one quotient that does not fit."""
    if least_of(right) > 0:
        return quotient(left, right), _NOWHERE
    undefined = (right == 0) | ((left == INT_MIN) & (right == -1))
    divisor = np.where(undefined, 1, right)
    # The remainder has the sign of the dividend; without it no rounding is needed.
    return (left - np.fmod(left, divisor)) // divisor, undefined


def _of_ints(compute: Callable[[Array, Array], Array], overflows: Overflows) -> Kernel:
    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        left, right, bad = _pair(args, np.int64)
        found = compute(left, right)
        return _checked(found, overflows(left, right, found), bad)

    return kernel


def _divide_int(rows: int, args: list[ColumnValue]) -> ColumnValue:
    left, right, bad = _pair(args, np.int64)
    whole, undefined = truncated_quotient(left, right)
    return _checked(whole, undefined, bad)


def _modulo_int(rows: int, args: list[ColumnValue]) -> ColumnValue:
    left, right, bad = _pair(args, np.int64)
    whole, undefined = truncated_quotient(left, right)
    return _checked(left - whole * right, undefined, bad)


def _of_int(compute: Callable[[Array], Array]) -> Kernel:
    """Return a kernel for one int that fails for the least one only."""

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        values, bad = spread(args[0], rows, np.int64)
        return _checked(compute(values), values == INT_MIN, bad)

    return kernel


def _column(values: Array | np.bool_ | np.int64, bad: Bad) -> ColumnValue:
    """Return a column, or the value that all rows share; NotColumnar if some are bad."""
    if not isinstance(values, np.generic):
        return Column(values, bad)
    if bad is not None:
        raise NotColumnar
    return Same(values.item())


def _of_two(compute: Callable[[Array, Array], Array], dtype: Any) -> Kernel:
    """Return a kernel for two arguments of one type that cannot fail."""

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        left, right, bad = _pair(args, dtype)
        return _column(compute(left, right), bad)

    return kernel


def _of_one(compute: Callable[[Array], Array], dtype: Any) -> Kernel:
    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        values, bad = spread(args[0], rows, dtype)
        return Column(compute(values), bad)

    return kernel


def _int_of_double(rows: int, args: list[ColumnValue]) -> ColumnValue:
    """Truncate; a value beyond int64, NaN included, is an error."""
    values, bad = spread(args[0], rows, np.float64)
    inside = (values > -(2.0**63)) & (values < 2.0**63)
    return _checked(np.where(inside, values, 0.0).astype(np.int64), ~inside, bad)


def _whole(round_to: Callable[[Array], Array]) -> Kernel:
    """Return `math.ceil` and its like: NaN and the infinities stay as they are, as does the sign of zero."""
    return _of_one(lambda values: np.copysign(round_to(values), values), np.float64)


def _round(values: Array) -> Array:
    """Round half away from zero, without the error of adding 0.5."""
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)


def _extreme(better: Callable[[Array, Array], Array], dtype: Any) -> Kernel:
    """Return `math.least` or `math.greatest`: the first of the best arguments."""

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        # The first operation makes an array of shared values, since some argument is an array.
        best, bad = operand(args[0], dtype)
        for arg in args[1:]:
            other, other_bad = operand(arg, dtype)
            best, bad = np.where(better(other, best), other, best), either(bad, other_bad)
        return Column(best, bad)

    return kernel


# ---- quantities --------------------------------------------------------------------------------------------


def scale_of(resource: str) -> int:
    """Return how many canonical units of a resource make one: cpu is counted in thousandths."""
    return _MILLI if resource == CPU else 1


def _amounts(args: list[ColumnValue]) -> tuple[Int64s, Int64s, int, Bad]:
    scale = max([arg.scale for arg in args if isinstance(arg, Amounts)], default=0)
    if not scale:
        raise NotColumnar
    (left, left_bad), (right, right_bad) = (amount_of(arg, scale) for arg in args)
    return left, right, scale, either(left_bad, right_bad)


def amount_of(value: ColumnValue, scale: int) -> tuple[Int64s, Bad]:
    """Return a quantity in a scale (one number if shared); NotColumnar if that is not exact in 64 bits."""
    if isinstance(value, Amounts):
        return value.values if value.scale == scale else _refined(value, scale), value.bad
    if isinstance(value, Same) and value.value.__class__ is InputQuantity:
        if scale != scale_of(value.value.source.resource):
            raise NotColumnar
        return cast(Int64s, value.value.traced()), None
    if isinstance(value, Same) and isinstance(value.value, Quantity):
        amount, rest = divmod(value.value.nanos * scale, NANOS_PER_UNIT)
        if rest == 0 and abs(amount) <= INT_MAX:
            return cast(Int64s, amount), None
    raise NotColumnar


def _refined(value: Amounts, scale: int) -> Int64s:
    """Return the amounts in a finer scale, as the quotients of quantities have it."""
    factor, rest = divmod(scale, value.scale)
    # A recording would have to check each time that the amounts are small enough.
    if rest or is_traced(value.values):
        raise NotColumnar
    if np.abs(value.values).max(initial=0) > INT_MAX // factor:
        raise NotColumnar
    return value.values * factor


def _compare_amounts(compare: Callable[[Array, Array], Array]) -> Kernel:
    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        left, right, _, bad = _amounts(args)
        return _column(compare(left, right), bad)

    return kernel


def _checked_amounts(values: Int64s, scale: int, overflow: Array | np.bool_, *bads: Bad) -> Amounts:
    """Return quantities, with those that overflowed marked. The least int64 is no quantity of units."""
    return Amounts(values, scale, either(*bads, _marked(overflow | (values == INT_MIN))))


def _of_amounts(compute: Callable[[Array, Array], Array], overflows: Overflows) -> Kernel:
    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        left, right, scale, bad = _amounts(args)
        found = compute(left, right)
        return _checked_amounts(found, scale, overflows(left, right, found), bad)

    return kernel


def _multiply_amount(rows: int, args: list[ColumnValue]) -> ColumnValue:
    first, second = args if isinstance(args[0], Amounts) else reversed(args)
    if not isinstance(first, Amounts):
        raise NotColumnar
    factor, bad = operand(second, np.int64)
    product = first.values * factor
    overflow = product_overflows(first.values, factor, product)
    return _checked_amounts(product, first.scale, overflow, first.bad, bad)


def _divide_amount(rows: int, args: list[ColumnValue]) -> ColumnValue:
    """Divide quantities by a constant: the same numbers in a finer scale, if that is exact in nanos."""
    amounts, divisor = args
    if not isinstance(amounts, Amounts) or not isinstance(divisor, Same) or divisor.value == 0:
        raise NotColumnar
    scale = amounts.scale * abs(divisor.value)
    if NANOS_PER_UNIT % scale:
        raise NotColumnar
    return Amounts(amounts.values if divisor.value > 0 else -amounts.values, scale, amounts.bad)


def _divide_amounts(rows: int, args: list[ColumnValue]) -> ColumnValue:
    left, right, _, bad = _amounts(args)
    whole, undefined = truncated_quotient(left, right)
    return _checked(whole, undefined, bad)


def _ratio_of_amounts(rows: int, args: list[ColumnValue]) -> ColumnValue:
    left, right, _, bad = _amounts(args)
    undefined = (right == 0) | (np.abs(left) > _EXACT) | (np.abs(right) > _EXACT)
    ratio = left / np.where(undefined, 1, right)
    return Column(ratio, either(bad, _marked(undefined)))


def _amount_as_integer(rows: int, args: list[ColumnValue]) -> ColumnValue:
    amounts = args[0]
    if not isinstance(amounts, Amounts):
        raise NotColumnar
    if amounts.scale == 1:
        return Column(amounts.values, amounts.bad)
    broken = amounts.values % amounts.scale != 0
    return _checked(amounts.values // amounts.scale, broken, amounts.bad)


def _sign_of_amounts(rows: int, args: list[ColumnValue]) -> ColumnValue:
    amounts = args[0]
    if not isinstance(amounts, Amounts):
        raise NotColumnar
    return Column(np.sign(amounts.values), amounts.bad)


def _compare_to(rows: int, args: list[ColumnValue]) -> ColumnValue:
    left, right, _, bad = _amounts(args)
    return _column((left > right).astype(np.int64) - (left < right), bad)


# ---- resources ---------------------------------------------------------------------------------------------


def _resources(value: ColumnValue) -> tuple[frozenset[str], Callable[[str], Int64s | int]]:
    """Return the resources that a value may name, and a reader of the amount of each."""
    if isinstance(value, ResourceTable):
        return value.names(), value.read
    if isinstance(value, Same) and isinstance(value.value, Resources):
        return frozenset(value.value.amounts()), value.value.amount
    raise NotColumnar


def _less_equals_resources(rows: int, args: list[ColumnValue]) -> ColumnValue:
    (names, left), (others, right) = map(_resources, args)
    result = np.ones(rows, dtype=np.bool_)
    for name in names | others:
        result &= left(name) <= right(name)
    return Column(result)


def _index_resources(rows: int, args: list[ColumnValue]) -> ColumnValue:
    table, name = args
    if not isinstance(table, ResourceTable) or not isinstance(name, Same):
        raise NotColumnar
    return Amounts(table.read(name.value), scale_of(name.value))


_ORDER: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "less": np.less,
    "less_equals": np.less_equal,
    "greater": np.greater,
    "greater_equals": np.greater_equal,
}

KERNELS: Final[Mapping[str, Kernel]] = {
    "add_int64": _of_ints(operator.add, sum_overflows),
    "subtract_int64": _of_ints(operator.sub, difference_overflows),
    "multiply_int64": _of_ints(operator.mul, product_overflows),
    "divide_int64": _divide_int,
    "modulo_int64": _modulo_int,
    "negate_int64": _of_int(operator.neg),
    "add_double": _of_two(np.add, np.float64),
    "subtract_double": _of_two(np.subtract, np.float64),
    "multiply_double": _of_two(np.multiply, np.float64),
    "divide_double": _of_two(np.divide, np.float64),
    "negate_double": _of_one(np.negative, np.float64),
    "logical_not": _of_one(np.logical_not, np.bool_),
    "int64_to_double": _of_one(lambda values: values.astype(np.float64), np.int64),
    "double_to_int64": _int_of_double,
    "math_abs_int": _of_int(np.abs),
    "math_abs_double": _of_one(np.abs, np.float64),
    "math_sqrt_double": _of_one(np.sqrt, np.float64),
    "math_ceil_double": _whole(np.ceil),
    "math_floor_double": _whole(np.floor),
    "math_round_double": _whole(_round),
    "math_trunc_double": _whole(np.trunc),
    **{f"{word}_int64": _of_two(compare, np.int64) for word, compare in _ORDER.items()},
    **{f"{word}_double": _of_two(compare, np.float64) for word, compare in _ORDER.items()},
    **{f"{word}_quantity": _compare_amounts(compare) for word, compare in _ORDER.items()},
    "math_greatest_int": _extreme(np.greater, np.int64),
    "math_least_int": _extreme(np.less, np.int64),
    "math_greatest_double": _extreme(np.greater, np.float64),
    "math_least_double": _extreme(np.less, np.float64),
    **dict.fromkeys(("add_quantity", "quantity_add"), _of_amounts(operator.add, sum_overflows)),
    **dict.fromkeys(("subtract_quantity", "quantity_sub"), _of_amounts(operator.sub, difference_overflows)),
    "multiply_quantity_int64": _multiply_amount,
    "multiply_int64_quantity": _multiply_amount,
    "divide_quantity": _divide_amounts,
    "divide_quantity_int64": _divide_amount,
    "ratio_quantity": _ratio_of_amounts,
    "quantity_as_integer": _amount_as_integer,
    "index_resources": _index_resources,
    "less_equals_resources": _less_equals_resources,
    "greater_equals_resources": lambda rows, args: _less_equals_resources(rows, args[::-1]),
    "quantity_sign": _sign_of_amounts,
    "sign_quantity": _sign_of_amounts,
    "quantity_is_greater_than": _compare_amounts(np.greater),
    "quantity_is_less_than": _compare_amounts(np.less),
    "quantity_compare_to": _compare_to,
}


def equality(left: ColumnValue, right: ColumnValue, dtype: Any, wanted: bool = True) -> ColumnValue:
    """Compare two values of one plain type for equality, or inequality if `wanted` is false. At least one is
    not shared by all rows.
    """
    compare = np.equal if wanted else np.not_equal
    if isinstance(left, Amounts) or isinstance(right, Amounts):
        first, second, _, bad = _amounts([left, right])
        return _column(compare(first, second), bad)
    if dtype is None:
        raise NotColumnar
    one, other, bad = _pair((left, right), dtype)
    return _column(compare(one, other), bad)

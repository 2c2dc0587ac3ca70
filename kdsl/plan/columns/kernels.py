"""Functions and operators over columns, by overload id.

Each returns the value of `kdsl.eval.functions` for every row that it does not mark as bad. Functions without
a kernel are left to the scalar back end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, cast

import numpy as np

from kdsl.base.quantity import NANOS_PER_UNIT, Quantity
from kdsl.base.resources import CPU
from kdsl.check.model.types import QUANTITY, STRING, Type
from kdsl.eval.values import INT_MAX, INT_MIN
from kdsl.plan.columns.column import (
    DTYPES,
    AllBad,
    Array,
    Bad,
    Coded,
    Column,
    ColumnValue,
    Int64s,
    NotColumnar,
    ResourceTable,
    Same,
    either,
    operand,
)
from kdsl.plan.columns.pod_inputs import InputQuantity
from kdsl.plan.columns.traced import is_exact, is_traced, least_of, quotient

Kernel = Callable[[int, list[ColumnValue]], ColumnValue]
"""Computes a call for a number of rows. At least one argument is not `Same`; numpy's warnings are off."""

Fails = Callable[..., "Array | np.bool_"]
"""Returns the rows in which an operation fails, from its operands, and most often from its result, too."""

AMOUNT: Final = Quantity
"""In place of the type of an array: quantities."""

_EXACT: Final = 2**53  # up to here every int64 is a float64
_MILLI: Final = 1000

_NOWHERE: Final = np.False_
"""Marks no row."""


def _operation(
    compute: Callable[..., Any],
    dtype: Any,
    fails: Fails | None = None,
    undefined: Fails | None = None,
    scaled: bool = False,
) -> Kernel:
    """Return the kernel of an operation on operands of one type. `scaled` if it makes amounts of amounts.

    `fails` returns from operands and result in which rows it failed. `undefined` returns from operands alone
    in which rows there is no result; `compute` then receives these rows as a further argument.
    """

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        values, bad, scale = operands(args, dtype)
        if undefined is None:
            found = compute(*values)
            failed = None if fails is None else fails(*values, found)
        else:
            failed = undefined(*values)
            found = compute(*values, failed)
        if failed is not None:
            bad = either(bad, _marked(failed))
        return _column(found, bad, scale if scaled else 0)

    return kernel


def operands(args: Sequence[ColumnValue], dtype: Any) -> tuple[list[Array], Bad, int]:
    """Return operands, each an array or one number that all rows share, where one of them is bad, and the
    scale of amounts. NotColumnar for values of another type.
    """
    values: list[Array] = []
    bad: Bad = None
    scale = max([scale_of(arg) for arg in args]) if dtype is AMOUNT else 0
    for arg in args:
        found, own = amount_of(arg, scale) if dtype is AMOUNT else operand(arg, dtype)
        values.append(found)
        bad = own if bad is None else either(bad, own)
    return values, bad, scale


def _marked(mask: Array | np.bool_) -> Bad:
    """Return a mask; None if it marks no row. AllBad if it is known to mark all rows."""
    if isinstance(mask, np.generic):
        if mask:
            raise AllBad
        return None
    return mask if mask.any() else None


def _column(values: Any, bad: Bad, scale: int) -> ColumnValue:
    """Return a column, or the value that all rows share; NotColumnar if some are bad."""
    if not isinstance(values, np.generic):
        return Column(values, bad, scale)
    if bad is not None:
        raise NotColumnar
    return Same(values.item())


def sum_overflows(left: Int64s, right: Int64s, total: Int64s) -> Array | np.bool_:
    """Return where `left + right` wrapped around: both have the sign that the total lacks."""
    return _NOWHERE if is_exact(total) else ((left ^ total) & (right ^ total)) < 0


def _difference_overflows(left: Int64s, right: Int64s, rest: Int64s) -> Array | np.bool_:
    return _NOWHERE if is_exact(rest) else ((left ^ right) & (left ^ rest)) < 0


def _product_overflows(left: Int64s, right: Int64s, product: Int64s) -> Array | np.bool_:
    """Return where a product may overflow, by its magnitude: slightly too often, never too seldom."""
    return _NOWHERE if is_exact(product) else np.abs(left * 1.0) * np.abs(right * 1.0) >= 2.0**62


def _or_least(overflows: Fails) -> Fails:
    """Return where an operation on amounts fails: the least int64 is no quantity of units."""
    return lambda left, right, found: overflows(left, right, found) | (found == INT_MIN)


def _quotient(left: Int64s, right: Int64s, undefined: Array | np.bool_) -> Int64s:
    """Divide toward zero, where that is defined."""
    if least_of(right) > 0:
        return quotient(left, right)
    divisor = np.where(undefined, 1, right)
    # The remainder has the sign of the dividend; without it no rounding is needed.
    return (left - np.fmod(left, divisor)) // divisor


def _remainder(left: Int64s, right: Int64s, undefined: Array | np.bool_) -> Int64s:
    return left - _quotient(left, right, undefined) * right


def _undefined(left: Int64s, right: Int64s) -> Array | np.bool_:
    """Return where there is no quotient: divisors of zero, and the one quotient that does not fit."""
    return _NOWHERE if least_of(right) > 0 else (right == 0) | ((left == INT_MIN) & (right == -1))


def _is_least(values: Int64s, found: Int64s) -> Array:
    """Return which ints have no opposite."""
    return np.equal(values, INT_MIN)


def _int_of_double(values: Array, is_no_int: Array) -> Int64s:
    found: Int64s = np.where(is_no_int, 0.0, values).astype(np.int64)
    return found


def _is_no_int(values: Array) -> Array:
    """Return which doubles are beyond int64; so is NaN."""
    return ~((values > -(2.0**63)) & (values < 2.0**63))


def _whole(round_to: Callable[[Array], Array]) -> Kernel:
    """Return `math.ceil` and its like: NaN and the infinities stay as they are, as does the sign of zero."""
    return _operation(lambda values: np.copysign(round_to(values), values), np.float64)


def _round(values: Array) -> Array:
    """Round half away from zero, without the error of adding 0.5."""
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)


def _of_doubles(better: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Return the extreme of doubles: the first of the best arguments, as zero has two signs."""
    return lambda *values: reduce(lambda best, one: np.where(better(one, best), one, best), values)


# ---- quantities --------------------------------------------------------------------------------------------


def resource_scale(resource: str) -> int:
    """Return how many canonical units of a resource make one: cpu is counted in thousandths."""
    return _MILLI if resource == CPU else 1


def scale_of(value: ColumnValue) -> int:
    """Return the scale of a column of amounts, 0 for other values."""
    return value.scale if isinstance(value, Column) else 0


def amount_of(value: ColumnValue, scale: int) -> tuple[Int64s, Bad]:
    """Return a quantity in a scale (one number if shared); NotColumnar if that is not exact in 64 bits."""
    if isinstance(value, Column) and value.scale:
        return value.values if value.scale == scale else _refined(value, scale), value.bad
    if isinstance(value, Same) and scale:
        amount = value.value
        if amount.__class__ is InputQuantity and scale == resource_scale(amount.source.resource):
            return cast(Int64s, amount.traced()), None
        if amount.__class__ is Quantity:
            found, rest = divmod(amount.nanos * scale, NANOS_PER_UNIT)
            if rest == 0 and abs(found) <= INT_MAX:
                return cast(Int64s, found), None
    raise NotColumnar


def _refined(value: Column, scale: int) -> Int64s:
    """Return amounts in a finer scale, such as that of a quotient of quantities."""
    factor, rest = divmod(scale, value.scale)
    # A recording would have to check each time that the amounts are small enough.
    if rest or is_traced(value.values) or np.abs(value.values).max(initial=0) > INT_MAX // factor:
        raise NotColumnar
    return value.values * factor


def _multiply_amount(rows: int, args: list[ColumnValue]) -> ColumnValue:
    amounts, factor = args if scale_of(args[0]) else reversed(args)
    left, bad = amount_of(amounts, scale_of(amounts))
    right, other_bad = operand(factor, np.int64)
    product = left * right
    failed = _or_least(_product_overflows)(left, right, product)
    return Column(product, either(bad, other_bad, _marked(failed)), scale_of(amounts))


def _divide_amount(rows: int, args: list[ColumnValue]) -> ColumnValue:
    """Divide quantities by a constant: the same numbers in a finer scale, if that is exact in nanos."""
    amounts, divisor = args
    if not isinstance(divisor, Same) or divisor.value == 0:
        raise NotColumnar
    values, bad = amount_of(amounts, scale_of(amounts))
    scale = scale_of(amounts) * abs(divisor.value)
    if NANOS_PER_UNIT % scale:
        raise NotColumnar
    return Column(values if divisor.value > 0 else -values, bad, scale)


def _ratio(left: Int64s, right: Int64s, undefined: Array) -> Array:
    return left / np.where(undefined, 1, right)


def _is_rounded(left: Int64s, right: Int64s) -> Any:
    """Return where a ratio of amounts is undefined, or not that of doubles."""
    return (right == 0) | (np.abs(left) > _EXACT) | (np.abs(right) > _EXACT)


def _amount_as_integer(rows: int, args: list[ColumnValue]) -> ColumnValue:
    scale = scale_of(args[0])
    values, bad = amount_of(args[0], scale)
    if scale == 1:
        return Column(values, bad)
    return Column(values // scale, either(bad, _marked(values % scale != 0)))


def _compare(left: Int64s, right: Int64s) -> Int64s:
    found: Int64s = (left > right).astype(np.int64) - (left < right)
    return found


# ---- resources ---------------------------------------------------------------------------------------------


def _index_resources(rows: int, args: list[ColumnValue]) -> ColumnValue:
    table, name = args
    if not isinstance(table, ResourceTable) or not isinstance(name, Same):
        raise NotColumnar
    return Column(table.read(name.value), scale=resource_scale(name.value))


def _in_resources(rows: int, args: list[ColumnValue]) -> ColumnValue:
    """Return which nodes have a resource: those with an amount of it that is not zero."""
    name, table = args
    if not isinstance(table, ResourceTable) or not isinstance(name, Same):
        raise NotColumnar
    return _column(table.read(name.value) != 0, None, 0)


_ORDER: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "less": np.less,
    "less_equals": np.less_equal,
    "greater": np.greater,
    "greater_equals": np.greater_equal,
}

_TYPES: Final = {"int64": np.int64, "double": np.float64, "quantity": AMOUNT}

KERNELS: Final[Mapping[str, Kernel]] = {
    "add_int64": _operation(operator.add, np.int64, sum_overflows),
    "subtract_int64": _operation(operator.sub, np.int64, _difference_overflows),
    "multiply_int64": _operation(operator.mul, np.int64, _product_overflows),
    "divide_int64": _operation(_quotient, np.int64, undefined=_undefined),
    "modulo_int64": _operation(_remainder, np.int64, undefined=_undefined),
    "negate_int64": _operation(operator.neg, np.int64, _is_least),
    "add_double": _operation(np.add, np.float64),
    "subtract_double": _operation(np.subtract, np.float64),
    "multiply_double": _operation(np.multiply, np.float64),
    "divide_double": _operation(np.divide, np.float64),
    "negate_double": _operation(np.negative, np.float64),
    "logical_not": _operation(np.logical_not, np.bool_),
    "int64_to_double": _operation(lambda values: values.astype(np.float64), np.int64),
    "double_to_int64": _operation(_int_of_double, np.float64, undefined=_is_no_int),
    "math_abs_int": _operation(np.abs, np.int64, _is_least),
    "math_abs_double": _operation(np.abs, np.float64),
    "math_sqrt_double": _operation(np.sqrt, np.float64),
    "math_ceil_double": _whole(np.ceil),
    "math_floor_double": _whole(np.floor),
    "math_round_double": _whole(_round),
    "math_trunc_double": _whole(np.trunc),
    **{
        f"{word}_{name}": _operation(compare, dtype)
        for word, compare in _ORDER.items()
        for name, dtype in _TYPES.items()
    },
    "math_greatest_int": _operation(lambda *values: reduce(np.maximum, values), np.int64),
    "math_least_int": _operation(lambda *values: reduce(np.minimum, values), np.int64),
    "math_greatest_double": _operation(_of_doubles(np.greater), np.float64),
    "math_least_double": _operation(_of_doubles(np.less), np.float64),
    **dict.fromkeys(
        ("add_quantity", "quantity_add"),
        _operation(operator.add, AMOUNT, _or_least(sum_overflows), scaled=True),
    ),
    **dict.fromkeys(
        ("subtract_quantity", "quantity_sub"),
        _operation(operator.sub, AMOUNT, _or_least(_difference_overflows), scaled=True),
    ),
    **dict.fromkeys(("multiply_quantity_int64", "multiply_int64_quantity"), _multiply_amount),
    "divide_quantity": _operation(_quotient, AMOUNT, undefined=_undefined),
    "divide_quantity_int64": _divide_amount,
    "ratio_quantity": _operation(_ratio, AMOUNT, undefined=_is_rounded),
    "quantity_as_integer": _amount_as_integer,
    "index_resources": _index_resources,
    "in_resources": _in_resources,
    **dict.fromkeys(("quantity_sign", "sign_quantity"), _operation(np.sign, AMOUNT)),
    "quantity_is_greater_than": _operation(np.greater, AMOUNT),
    "quantity_is_less_than": _operation(np.less, AMOUNT),
    "quantity_compare_to": _operation(_compare, AMOUNT),
}


def _equality(dtype: Any, wanted: bool) -> Kernel:
    return _operation(np.equal if wanted else np.not_equal, dtype)


def _equality_of_values(wanted: bool) -> Kernel:
    """Return the kernel of coded values and one that all rows share, or of amounts."""
    of_amounts = _equality(AMOUNT, wanted)

    def kernel(rows: int, args: list[ColumnValue]) -> ColumnValue:
        one, other = args if isinstance(args[0], Coded) else reversed(args)
        if not isinstance(one, Coded) or not isinstance(other, Same):
            return of_amounts(rows, args)
        matches = np.array([(value == other.value) is wanted for value in one.values], dtype=np.bool_)
        return Column(matches[one.codes], one.bad)

    return kernel


EQUALITY: Final[Mapping[tuple[Type, str], Kernel]] = {
    (type_, overload): _equality_of_values(wanted)
    if type_ in (STRING, QUANTITY)
    else _equality(DTYPES[type_], wanted)
    for type_ in (*DTYPES, STRING, QUANTITY)
    for overload, wanted in (("equals", True), ("not_equals", False))
}
"""`==` and `!=` of two values of one type, by overload."""

"""Kernels return the value of `kdsl.eval.functions` for every row that they do not mark as bad."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.quantity import Quantity
from kdsl.base.resources import quantity_of
from kdsl.check.model.types import DOUBLE
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value
from kdsl.plan.columns.column import Column, ColumnValue, NotColumnar, Same, encoded
from kdsl.plan.columns.kernels import EQUALITY, KERNELS

INTS = st.one_of(
    st.sampled_from([0, 1, -1, 2, 2**31, 2**53, 2**53 + 1, 2**62, INT_MAX, INT_MIN, INT_MIN + 1]),
    st.integers(INT_MIN, INT_MAX),
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 0.5, 5e-324]), st.floats()
)
OF_INTS = sorted(
    name
    for name in KERNELS
    if name.endswith(("int64", "_int")) and "quantity" not in name and "double" not in name
)
OF_DOUBLES = sorted(
    name for name in KERNELS if "double" in name and name != "int64_to_double" and "list" not in name
)
OF_AMOUNTS = [
    *(
        "add_quantity",
        "subtract_quantity",
        "divide_quantity",
        "ratio_quantity",
        "quantity_add",
        "quantity_sub",
    ),
    *("less_quantity", "less_equals_quantity", "greater_quantity", "greater_equals_quantity"),
    *("quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"),
]
ONE = {
    "negate_int64",
    "negate_double",
    "math_abs_int",
    "math_abs_double",
    "math_sqrt_double",
    *("math_ceil_double", "math_floor_double", "math_round_double", "math_trunc_double"),
    "double_to_int64",
}
MAY_BE_BAD = {"multiply_int64", "double_to_int64"}
"""Kernels that may leave a row to the scalar back end though it has a value."""


def _expected(name: str, values: list[Value]) -> Value:
    try:
        return IMPLEMENTATIONS[name](*values)
    except EvalError as error:
        return error


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and bool(one == other)


def _check(name: str, args: list[ColumnValue], rows: list[list[Value]], scale: int = 1) -> None:
    with np.errstate(all="ignore"):
        found = KERNELS[name](len(rows), args)
    assert isinstance(found, Column)
    for row, values in enumerate(rows):
        expected = _expected(name, values)
        if found.bad is not None and found.bad[row]:
            assert isinstance(expected, EvalError) or name in MAY_BE_BAD or found.scale
            continue
        cell = found.values[row].item()
        if found.scale:
            cell = Quantity(cell * (10**9 // scale))
        assert _same(cell, expected), (name, values)


@pytest.mark.parametrize("name", OF_INTS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_ints(name: str, data: st.DataObject) -> None:
    count = 1 if name in ONE else 2
    rows = data.draw(st.lists(st.lists(INTS, min_size=count, max_size=count), min_size=1, max_size=6))
    columns: list[ColumnValue] = [Column(np.array([row[at] for row in rows])) for at in range(count)]
    _check(name, columns, rows)
    if count == 2:
        shared = data.draw(INTS)
        _check(name, [columns[0], Same(shared)], [[row[0], shared] for row in rows])


@pytest.mark.parametrize("name", OF_DOUBLES)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_doubles(name: str, data: st.DataObject) -> None:
    count = 1 if name in ONE else 2
    rows = data.draw(st.lists(st.lists(DOUBLES, min_size=count, max_size=count), min_size=1, max_size=6))
    _check(name, [Column(np.array([row[at] for row in rows])) for at in range(count)], rows)


@pytest.mark.parametrize("name", OF_AMOUNTS)
@pytest.mark.parametrize(("resource", "scale"), [("cpu", 1000), ("memory", 1)])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_quantities(name: str, resource: str, scale: int, data: st.DataObject) -> None:
    amounts = st.one_of(
        st.sampled_from([0, 1, -1, INT_MAX, -INT_MAX, 2**53, 2**53 + 1]), st.integers(-(2**62), 2**62)
    )
    rows = data.draw(st.lists(st.lists(amounts, min_size=2, max_size=2), min_size=1, max_size=6))
    columns: list[ColumnValue] = [Column(np.array([row[at] for row in rows]), None, scale) for at in range(2)]
    values = [[quantity_of(resource, one) for one in row] for row in rows]
    with np.errstate(all="ignore"):
        found = KERNELS[name](len(rows), columns)
    assert isinstance(found, Column)
    for row, pair in enumerate(values):
        if found.bad is not None and found.bad[row]:
            continue
        cell = found.values[row].item()
        cell = Quantity(cell * (10**9 // scale)) if found.scale else cell
        assert _same(cell, _expected(name, list(pair))) or cell == _expected(name, list(pair))


DIVISORS = st.sampled_from([1, 2, 4, 5, 8, 10, 1000, 10**6, -1, -2, -5, 3, 7, 0, 2**40, INT_MAX, INT_MIN])


@pytest.mark.parametrize(("resource", "scale"), [("cpu", 1000), ("memory", 1)])
@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_quotients_of_quantities_by_integers(resource: str, scale: int, data: st.DataObject) -> None:
    amounts = st.one_of(st.sampled_from([0, 1, -1, 2**53 + 1, 2**62, -(2**62)]), st.integers(-(2**50), 2**50))
    rows = data.draw(st.lists(st.lists(amounts, min_size=2, max_size=2), min_size=1, max_size=6))
    divisors = data.draw(st.lists(DIVISORS, min_size=1, max_size=2))
    compare = data.draw(st.sampled_from(["less_quantity", "greater_equals_quantity", "quantity_compare_to"]))
    column: ColumnValue = Column(np.array([row[0] for row in rows]), None, scale)
    other = Column(np.array([row[1] for row in rows]), None, scale)
    cells: list[Value] = [quantity_of(resource, row[0]) for row in rows]
    with np.errstate(all="ignore"):
        try:
            for divisor in divisors:
                column = KERNELS["divide_quantity_int64"](len(rows), [column, Same(divisor)])
                cells = [_expected("divide_quantity_int64", [cell, divisor]) for cell in cells]
            found = KERNELS[compare](len(rows), [column, other])
        except NotColumnar:
            # Left to the scalar back end: not exact in nanos, or too large.
            largest = max(abs(one) for row in rows for one in row)
            product = scale * abs(math.prod(divisors))
            assert 0 in divisors or 10**9 % product or largest * (product // scale) > INT_MAX
            return
    assert isinstance(column, Column) and isinstance(found, Column)
    for row, cell in enumerate(cells):
        assert Quantity(column.values[row].item() * (10**9 // column.scale)) == cell
        assert found.values[row].item() == _expected(compare, [cell, quantity_of(resource, rows[row][1])])


@given(st.lists(st.tuples(DOUBLES, DOUBLES), min_size=1))
def test_equality_of_doubles_is_that_of_cel(pairs: list[tuple[float, float]]) -> None:
    left, right = (np.array([pair[at] for pair in pairs]) for at in range(2))
    found = EQUALITY[DOUBLE, "equals"](len(left), [Column(left), Column(right)])
    assert isinstance(found, Column)
    assert found.values.tolist() == [IMPLEMENTATIONS["equals"](*pair) for pair in pairs]


@given(st.lists(INTS | st.integers(-5000, 5000), max_size=9), INTS)
def test_an_encoded_column_has_each_integer_once(numbers: list[int], base: int) -> None:
    for values in (numbers, [base + each % 4 for each in numbers if base < INT_MAX - 4]):
        coded = encoded(Column(np.array(values, np.int64)))
        assert [coded.values[code] for code in coded.codes] == values
        assert coded.values == sorted(set(values))


def test_each_kernel_is_one_of_a_function_there_is() -> None:
    """Otherwise it would never be used, and its function would be computed node by node."""
    assert set(KERNELS) <= set(IMPLEMENTATIONS)

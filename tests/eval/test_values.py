from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.quantity import Quantity
from kdsl.check.model.types import Type
from kdsl.eval.values import (
    INT_MAX,
    INT_MIN,
    MAX_ITEMS,
    MAX_TEXT,
    NONE,
    BoolKey,
    Duration,
    EvalError,
    Optional,
    Timestamp,
    UInt,
    checked_int,
    checked_list,
    checked_text,
    checked_timestamp,
    equals,
    keys_of,
    kind_of,
    to_key,
    to_map,
)

numbers = st.one_of(
    st.integers(INT_MIN, INT_MAX),
    st.integers(0, 2**64 - 1).map(UInt),
    st.floats(allow_nan=False),
)
keys = st.one_of(st.text(max_size=2), st.booleans(), st.integers(0, 3))
values = st.recursive(
    st.one_of(numbers, st.booleans(), st.none(), st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=2), st.booleans(), st.integers(0, 3)).map(to_key), inner, max_size=3
        ),
        inner.map(Optional),
    ),
    max_leaves=8,
)


@given(values, values)
def test_equality_is_symmetric(left: object, right: object) -> None:
    assert equals(left, right) == equals(right, left)


@given(values)
def test_a_value_without_nan_equals_itself(value: object) -> None:
    assert equals(value, value)


@given(numbers, numbers)
def test_numbers_are_equal_exactly_by_value(left: float, right: float) -> None:
    if math.isinf(left) or math.isinf(right):
        assert equals(left, right) == (left == right)
    else:
        assert equals(left, right) == (Fraction(left) == Fraction(right))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, UInt(1), True),
        (2**53 + 1, float(2**53), False),
        (math.nan, math.nan, False),
        (True, 1, False),
        (1, "1", False),
        (b"a", "a", False),
        (None, None, True),
        ((1, 2), [1.0, 2.0], True),
        ((1,), (True,), False),
        ({1: "a"}, {UInt(1): "a"}, True),
        ({1: "a"}, {BoolKey.TRUE: "a"}, False),
        (Timestamp(1), Duration(1), False),
        (Timestamp(1), 1, False),
        (NONE, Optional(None), False),
        (Optional(1), Optional(1.0), True),
        (Type("list"), Type("list"), True),
        (Quantity.of(1), Quantity.of_milli(1000), True),
        (Quantity.of(1), 1, False),
    ],
)
def test_equality(left: object, right: object, expected: bool) -> None:
    assert equals(left, right) is expected


def test_bool_and_int_are_different_keys() -> None:
    entries = to_map([(True, "t"), (1, "one"), ("1", "text")])
    assert len(entries) == 3
    assert entries[to_key(True)] == "t"
    assert entries[to_key(1.0)] == "one"
    assert keys_of(entries) == [True, 1, "1"]


@pytest.mark.parametrize("key", [1.0, None, (), b"a"])
def test_other_keys_are_refused(key: object) -> None:
    with pytest.raises(EvalError, match="unsupported key type"):
        to_map([(key, 1)])


def test_a_repeated_key_is_refused() -> None:
    with pytest.raises(EvalError, match="repeated key: 1"):
        to_map([(1, "a"), (UInt(1), "b")])


def test_names_of_types() -> None:
    assert [kind_of(value) for value in (True, 1, UInt(1), 1.0, {}, range(3))] == [
        *("bool", "int", "uint", "double", "map", "list")
    ]


@pytest.mark.parametrize(
    "too_large",
    [
        lambda: checked_int(INT_MAX + 1),
        lambda: checked_int(INT_MIN - 1),
        lambda: checked_text("a" * (MAX_TEXT + 1)),
        lambda: checked_list((), MAX_ITEMS + 1),
        lambda: checked_timestamp(253_402_300_800 * 10**9),
    ],
)
def test_limits(too_large: object) -> None:
    with pytest.raises(EvalError):
        too_large()  # type: ignore[operator]

"""Results of operations on arrays lie within their computed ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.eval.values import INT_MAX, INT_MIN
from kdsl.plan.columns.ranges import (
    ALL_INTS,
    EXACT,
    decided,
    is_within,
    range_of,
    toward_zero,
    toward_zero_exact,
)

INTS = st.one_of(st.sampled_from([0, 1, -1, 2**53 + 1, INT_MAX, INT_MIN]), st.integers(INT_MIN, INT_MAX))
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, 1e308]), st.floats(allow_nan=False, allow_infinity=False)
)
OF_INTS = [np.add, np.subtract, np.multiply, np.floor_divide, toward_zero, np.minimum, np.maximum]
COMPARISONS = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal]
OF_DOUBLES = [np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum]


def _pairs(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw two lists of two numbers or more: the bounds, and the values between."""
    some = st.lists(numbers, min_size=2, max_size=4)
    return st.tuples(some, some)


@pytest.mark.parametrize("function", OF_INTS)
@given(_pairs(INTS))
def test_ints_that_fit_are_within_their_range(
    function: Callable[[Any, Any], Any], found: tuple[list[int], list[int]]
) -> None:
    left, right = found
    known = range_of(function, [(min(left), max(left)), (min(right), max(right))], False)
    if known is None or not is_within(known, ALL_INTS):
        return
    with np.errstate(all="ignore"):
        for one in left:
            for other in right:
                result = function(np.array([one]), np.array([other]))[0].item()
                assert known[0] <= result <= known[1]


@pytest.mark.parametrize("function", OF_DOUBLES)
@given(_pairs(DOUBLES))
def test_doubles_are_within_their_range(
    function: Callable[[Any, Any], Any], found: tuple[list[float], list[float]]
) -> None:
    left, right = found
    known = range_of(function, [(min(left), max(left)), (min(right), max(right))], True)
    if known is None:
        return
    with np.errstate(all="ignore"):
        for one in left:
            for other in right:
                assert known[0] <= function(np.float64(one), np.float64(other)) <= known[1]


@pytest.mark.parametrize("function", [np.negative, np.absolute])
@given(st.lists(INTS, min_size=2, max_size=4))
def test_functions_of_one_int(function: Callable[[Any], Any], numbers: list[int]) -> None:
    known = range_of(function, [(min(numbers), max(numbers))], False)
    assert known is not None
    if is_within(known, ALL_INTS):
        assert all(known[0] <= function(np.array(each)).item() <= known[1] for each in numbers)


@pytest.mark.parametrize("compare", COMPARISONS)
@given(_pairs(st.integers(-3, 3)))
def test_a_comparison_is_decided_where_all_numbers_agree(
    compare: np.ufunc, found: tuple[list[int], list[int]]
) -> None:
    left, right = found
    known = decided(compare, [(min(left), max(left)), (min(right), max(right))])
    results = {bool(compare(one, other)) for one in left for other in right}
    assert known is None or results == {known}


EXACTLY = st.one_of(st.sampled_from([*EXACT, 0, 1, -1]), st.integers(*EXACT))


@given(EXACTLY, st.integers(1, EXACT[1]), st.integers(-1, 1))
def test_quotients_in_doubles_are_exact(left: int, right: int, more: int) -> None:
    # The most difficult dividends are next to a multiple of the divisor.
    for dividend in (left, left // right * right + more):
        if is_within((dividend, dividend), EXACT):
            one, other = np.array([dividend]), np.array([right])
            assert toward_zero_exact(one, other).tolist() == toward_zero(one, other).tolist()

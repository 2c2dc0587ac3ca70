"""The ranges of sums and products hold every result."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.check.rules.ranges import Range, combined

WHOLE = st.integers(-(2**63), 2**63 - 1)
RANGES = st.tuples(WHOLE, WHOLE).map(lambda pair: (min(pair), max(pair)))


@pytest.mark.parametrize(
    ("symbol", "function"), [("_+_", operator.add), ("_-_", operator.sub), ("_*_", operator.mul)]
)
@given(one=RANGES, other=RANGES, data=st.data())
def test_results_are_inside(
    symbol: str, function: object, one: Range, other: Range, data: st.DataObject
) -> None:
    left, right = (data.draw(st.integers(int(low), int(high))) for low, high in (one, other))
    low, high = combined(symbol, one, other)
    assert low <= function(left, right) <= high  # type: ignore[operator]
    corners = {function(a, b) for a in one for b in other}  # type: ignore[operator]
    assert {low, high} <= corners

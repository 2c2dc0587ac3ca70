"""Confidence intervals: against tables of Student's t and intervals worked out by hand."""

from __future__ import annotations

import math

import pytest
from kdsl.lab.intervals import Interval, interval_of, t_quantile

# Two-sided 95 % and 99 % quantiles, as tables of the distribution print them.
TABLE = {
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    3: (3.182, 5.841),
    4: (2.776, 4.604),
    5: (2.571, 4.032),
    9: (2.262, 3.250),
    10: (2.228, 3.169),
    30: (2.042, 2.750),
    120: (1.980, 2.617),
}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_tables(freedom: int) -> None:
    assert (round(t_quantile(0.975, freedom), 3), round(t_quantile(0.995, freedom), 3)) == TABLE[freedom]


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert t_quantile(0.975, 10_000) == pytest.approx(1.960, abs=0.001)
    assert t_quantile(0.5, 7) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("probability", "freedom"), [(1.0, 3), (0.4, 3), (0.9, 0), (math.nan, 3)])
def test_there_is_no_quantile_for_nonsense(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, freedom)


def test_an_interval_by_hand() -> None:
    # Mean 4, standard deviation 2, and 4.303 · 2 / √3 = 4.968.
    found = interval_of([2.0, 4.0, 6.0])
    assert found is not None and found.half is not None
    assert (found.count, found.mean, found.least, found.most) == (3, 4.0, 2.0, 6.0)
    assert found.half == pytest.approx(4.968, abs=0.001)
    assert (found.low, found.high) == (4 - found.half, 4 + found.half)


def test_one_value_has_no_interval() -> None:
    assert interval_of([3.0]) == Interval(1, 3.0, 3.0, 3.0, None)
    assert interval_of([]) is None


def test_what_is_no_number_does_not_count() -> None:
    assert interval_of([None, math.nan, math.inf, 1.0, 1.0]) == Interval(2, 1.0, 1.0, 1.0, 0.0)

"""Means of a few values with their confidence intervals, by Student's t."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of `count` values, the smallest and the largest, and half the width of the mean's confidence
    interval: None of a single value, which says nothing about others.
    """

    count: int
    mean: float
    least: float
    most: float
    half: float | None

    @property
    def low(self) -> float | None:
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        return None if self.half is None else self.mean + self.half


def interval_of(values: Iterable[float | None]) -> Interval | None:
    """Return the mean of values with its two-sided confidence interval; None without values.

    The interval is mean ± t·s/√n, with the standard deviation s of the sample (n - 1) and the quantile t of
    Student's distribution with n - 1 degrees of freedom. It supposes that values are drawn independently and
    are about normal. None and values that are no finite number do not count.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    count = len(known)
    mean = math.fsum(known) / count
    half = None
    if count > 1:
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (count - 1))
        half = t_quantile((1 + CONFIDENCE) / 2, count - 1) * deviation / math.sqrt(count)
    return Interval(count, mean, min(known), max(known), half)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution for a probability from 0.5 to below 1.

    Found by bisection of the distribution's closed form for whole degrees of freedom. ValueError for others.
    """
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ValueError(f"no quantile for probability {probability} and {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while _below(high, freedom) < probability:
        high *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if _below(middle, freedom) < probability else (low, middle)


def _below(value: float, freedom: int) -> float:
    """Return the probability of less than a value of at least 0 (Abramowitz and Stegun, 26.7.3, 26.7.4)."""
    angle = math.atan2(value, math.sqrt(freedom))
    cosine_squared = math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = total = 0.0
    if freedom > 1:
        term = total = math.cos(angle) if is_odd else 1.0
    for number in range(3 if is_odd else 2, freedom - 1, 2):
        term *= cosine_squared * (number - 1) / number
        total += term
    within = math.sin(angle) * total
    if is_odd:
        within = 2 / math.pi * (angle + within)
    return (1 + within) / 2

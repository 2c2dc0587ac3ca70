"""Raw scores to 0..100: kube-scheduler's formulas in its arithmetic, vectorised if that is exact.

`max` and `reverse` are DefaultNormalizeScore (int64, truncating), `minmax` is InterPodAffinity's (float64).
Doubles use the same formulas in float64 and are truncated.

The set is closed: kube-scheduler's three, each short for a `normalize by` that `docs/language.md` states and
a test compares. Any other formula is a `normalize by`, which the scalar back end computes once for each
distinct score. As `normalize by` in the shipped rules the three took 5 to 10 % more processor time for a pod
on nodes that all differ, and products beyond int64, exact here, are errors there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.base.extremes import largest_of, least_of
from kdsl.eval.values import INT_MAX, INT_MIN
from kdsl.lang.choices import Normalization

Scores: TypeAlias = NDArray[np.int64 | np.float64]

MAX_SCORE = 100
_LOWEST = INT_MIN + MAX_SCORE + 1
"""The lowest number that 100 minus it does not wrap for; far out of range in any case."""
_LARGEST = math.nextafter(2.0**63, 0)
"""The double just below 2**63: the next one up is out of range."""
_HUGE = sys.float_info.max / (2 * MAX_SCORE)
"""Larger doubles could overflow in between."""
_EXACT: Final = 2**53
"""Whole numbers that are no larger are doubles as well."""
_NARROW: Final = 16
"""In a range of so many integers, all are normalised faster than a column of some hundred scores."""


def normalize(kind: Normalization, raw: Scores) -> NDArray[np.int64]:
    """Normalise the scores of all feasible nodes; `normalize by` is handled elsewhere."""
    if not raw.size:
        return raw.astype(np.int64)
    match kind:
        case Normalization.NONE:
            return truncate(raw)
        case Normalization.MINMAX:
            return _between(raw)
        case Normalization.MAX | Normalization.REVERSE:
            return _of_maximum(raw, reverse=kind is Normalization.REVERSE)
    raise ValueError(f"no formula for {kind}")


def normalize_few(kind: Normalization, scores: Sequence[int]) -> Sequence[int]:
    """Normalise a few different integers in ascending order like `normalize`: each operation on a column
    costs as much as all of them.
    """
    lowest, highest = scores[0], scores[-1]
    if kind is Normalization.NONE or lowest < -_EXACT or highest > _EXACT:
        points: list[int] = normalize(kind, np.array(scores, np.int64)).tolist()
        return points
    if kind is Normalization.MINMAX:
        span = float(highest - lowest)
        return [int(100.0 * ((score - lowest) / span)) if span else 0 for score in scores]
    if highest <= 0:
        return [MAX_SCORE] * len(scores) if kind is Normalization.REVERSE else scores
    scaled = [_scaled(score, highest) for score in scores]
    return [MAX_SCORE - score for score in scaled] if kind is Normalization.REVERSE else scaled


def normalize_close(kind: Normalization, raw: Scores) -> tuple[Sequence[int], NDArray[np.int64]] | None:
    """Normalise integers that are close to each other. Return the points of each integer from the least to
    the largest, and the place of each score in them, which may be the scores themselves. None for other
    scores, and for very negative ones: the mark of a missing score is INT_MIN.

    The points rise or fall with the score, so the first and the last are their bounds.
    """
    if not raw.size or raw.dtype != np.int64:
        return None
    least, largest = least_of(raw), largest_of(raw)
    if largest - least >= _NARROW or least < -_EXACT:
        return None
    places = raw.astype(np.int64, copy=False)
    return _points_between(kind, least, largest), places - least if least else places


@lru_cache(1024)
def _points_between(kind: Normalization, least: int, largest: int) -> tuple[int, ...]:
    """Return the points of each integer from the least score to the largest, at most `_NARROW` of them. The
    scores of two pods often have the same bounds.
    """
    return tuple(normalize_few(kind, range(least, largest + 1)))


def truncate(values: Scores) -> NDArray[np.int64]:
    """Return the whole parts, held within int64."""
    if values.dtype == np.int64:
        return values.astype(np.int64, copy=False)
    return np.clip(np.trunc(values), INT_MIN, _LARGEST).astype(np.int64)


def whole(value: float) -> int:
    """Return the whole part of one finite double, held within int64 as `truncate` does."""
    return int(min(max(value, INT_MIN), _LARGEST))


def _of_maximum(raw: Scores, reverse: bool) -> NDArray[np.int64]:
    """Return `100 * s / max`, or 100 minus that; if no score is above 0, the scores, or 100 for all."""
    highest = max(0, largest_of(raw))
    if highest == 0:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64) if reverse else truncate(raw)
    if raw.dtype != np.int64:
        # Very large ones are divided first: 100 times them is no double.
        is_huge = max(highest, -least_of(raw)) > _HUGE
        with np.errstate(over="ignore"):
            shares = MAX_SCORE * (raw / highest) if is_huge else MAX_SCORE * raw / highest
        scaled = np.maximum(truncate(shares), _LOWEST)
    elif highest <= INT_MAX // MAX_SCORE and least_of(raw) >= INT_MIN // MAX_SCORE:
        products = MAX_SCORE * np.abs(raw)
        scaled = np.sign(raw) * (products // highest)
    else:
        scaled = np.array([max(_LOWEST, _scaled(score, highest)) for score in raw.tolist()], np.int64)
    return MAX_SCORE - scaled if reverse else scaled


def _scaled(score: int, highest: int) -> int:
    quotient = MAX_SCORE * abs(score) // highest
    return quotient if score >= 0 else -quotient


def _between(raw: Scores) -> NDArray[np.int64]:
    """Return `100 * ((s - min) / (max - min))` truncated, 0 for all if they are equal."""
    lowest, highest = least_of(raw), largest_of(raw)
    if raw.dtype != np.int64 and max(highest, -lowest) > _HUGE:
        raw, lowest, highest = raw / 4, lowest / 4, highest / 4  # a power of two changes no digit
    span = highest - lowest
    if span == 0:
        return np.zeros(len(raw), dtype=np.int64)
    if raw.dtype == np.int64 and span > INT_MAX:
        return np.array([int(100.0 * ((score - lowest) / span)) for score in raw.tolist()], dtype=np.int64)
    # Shares are within 0..100, so int64 needs no check.
    shares: NDArray[np.int64] = (100.0 * ((raw - lowest) / span)).astype(np.int64)
    return shares

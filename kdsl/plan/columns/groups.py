"""Groups of rows with equal inputs: the answer of a group's first row holds for all of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from kdsl.eval.first_positions import BYTES, first_places
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.column import Array

Codes = NDArray[np.int64]
Digit = tuple[NDArray[np.integer[Any]], int]
"""A property in which rows differ: a code for each row, and the number of codes."""
T = TypeVar("T")

MOST: Final = MIN_ROWS - 1
"""The most groups that count as few; with more, columns are as fast. Pairs of them fit in a byte."""
_LARGEST: Final = 1 << 30
"""The most combinations of codes that are numbered as they are."""


class Groups(Struct, eq=False):
    """Rows in few groups.

    `codes` has a number below `BYTES` per row, equal within a group. `marks` are the numbers of the groups
    and `firsts` their first rows, in the order of these rows.
    """

    codes: NDArray[np.uint8]
    marks: list[int]
    firsts: list[int]

    def spread(self, answers: Iterable[Any], dtype: DTypeLike) -> Array:
        """Return the answer of its group for each row."""
        cells = np.empty(BYTES, dtype)
        for mark, answer in zip(self.marks, answers, strict=True):
            cells[mark] = answer
        return cells.take(self.codes)


class Grouped(Struct, Generic[T], eq=False):
    """A column in which each group has one of the `values`."""

    values: list[T]
    groups: Groups

    def column(self, dtype: DTypeLike) -> Array:
        """Return the value of each row."""
        return self.groups.spread(self.values, dtype)


def few_groups(digits: Iterable[Digit], rows: int) -> Groups | None:
    """Return the groups of rows that agree in all digits; None if there are more than `MOST`."""
    codes, size = _combined(digits, rows)
    if size > BYTES:
        ordered = codes.copy()
        ordered.sort()
        ends = (ordered[1:] != ordered[:-1]).nonzero()[0]
        if len(ends) >= MOST:
            return None
        codes = ordered.take(ends).searchsorted(codes)
    numbers = codes.astype(np.uint8)
    found = first_places(numbers.tobytes(), MOST + 1)
    return Groups(numbers, [*found], [*found.values()]) if len(found) <= MOST else None


def grouped(digits: Sequence[Digit] | None, rows: int) -> tuple[Array, Codes]:
    """Return the first row of each distinct combination of codes, and the combination of each row. Without
    digits each row is its own.
    """
    if digits is None:
        return np.arange(rows), np.arange(rows)
    combined, size = _combined(digits, rows)
    groups = few_groups([(combined, size)], rows) if size <= BYTES else None
    if groups is not None:
        return np.array(groups.firsts, np.int64), groups.spread(range(len(groups.firsts)), np.int64)
    _, representatives, numbers = np.unique(combined, return_index=True, return_inverse=True)
    return representatives, numbers.astype(np.int64)


def _combined(digits: Iterable[Digit], rows: int) -> tuple[Any, int]:
    """Return one digit in which rows differ if they differ in any of some digits."""
    codes: Any = None
    size = 1
    for own, count in digits:
        if size * count > _LARGEST:
            own, count = _renumbered(own)
            if codes is not None:
                codes, size = _renumbered(codes)
        codes, size = own if codes is None else codes * np.int64(count) + own, size * count
    return np.zeros(rows, np.int64) if codes is None else codes, size


def _renumbered(codes: Array) -> Digit:
    """Return a digit whose codes are below the number of rows."""
    return np.unique(codes, return_inverse=True)[1].astype(np.int64), len(codes)

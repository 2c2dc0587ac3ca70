"""Groups of rows with equal inputs: the answer of a group's first row holds for all of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from kdsl.eval.codes import BYTES, first_places, first_rows
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.column import Array

Codes = NDArray[np.int64]
Digit = tuple[NDArray[np.integer[Any]], int]
"""A property in which rows differ: a code for each row, and the number of codes."""
T = TypeVar("T")

MOST: Final = MIN_ROWS - 1
"""The most groups that count as few; with more, columns are as fast. Pairs of them fit in a byte."""
_DIRECT: Final = 4096
"""The most combinations of codes that get a cell each."""


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

    def agree_in(self, codes: Array) -> bool:
        """Return whether the rows of each group have one code."""
        return not np.count_nonzero(self.spread(map(codes.item, self.firsts), codes.dtype) != codes)

    def divided(self, others: Groups) -> Groups | None:
        """Return the groups of rows that share both groups; None if there are more than `MOST`."""
        count = len(others.marks)
        numbers = self.spread(range(0, len(self.marks) * count, count), np.uint8)
        return _few(numbers + others.spread(range(count), np.uint8))


class Grouped(Struct, Generic[T], eq=False):
    """A column in which each group has one of the `values`."""

    values: list[T]
    groups: Groups

    def column(self, dtype: DTypeLike) -> Array:
        """Return the value of each row."""
        return self.groups.spread(self.values, dtype)


def few_groups(digits: Iterable[Digit], rows: int) -> Groups | None:
    """Return the groups of rows that agree in all digits; None if there are more than `MOST`."""
    joined = _joined(digits)
    if not joined:
        return Groups(np.zeros(rows, np.uint8), [0][:rows], [0][:rows])
    groups = _few(*joined[0])
    for codes, size in joined[1:]:
        if groups is None:
            return None
        # Digits often differ together.
        if not groups.agree_in(codes):
            others = _few(codes, size)
            groups = None if others is None else groups.divided(others)
    return groups


def _joined(digits: Iterable[Digit]) -> list[Digit]:
    """Return fewer equivalent digits: neighbours are joined if all their combinations fit in one byte."""
    found: list[Digit] = []
    for codes, size in digits:
        if found and found[-1][1] * size <= BYTES:
            others, count = found.pop()
            found.append((others * size + codes, count * size))
        else:
            found.append((codes, size))
    return found


def _few(codes: Array, size: int = BYTES) -> Groups | None:
    """Return the groups of rows by a code below `size`; None if there are more than `MOST`."""
    if size > BYTES:
        ordered = np.sort(codes)
        ends = (ordered[1:] != ordered[:-1]).nonzero()[0]
        if len(ends) >= MOST:
            return None
        codes = ordered.take(ends).searchsorted(codes)
    numbers = codes.astype(np.uint8)
    found = first_places(numbers.tobytes(), MOST + 1)
    return Groups(numbers, [*found], [*found.values()]) if len(found) <= MOST else None


def combinations(digits: Iterable[Digit]) -> int:
    """Return the number of possible combinations of codes."""
    return prod([size for _, size in digits])


def grouped(digits: Sequence[Digit], rows: int) -> tuple[Array, Codes]:
    """Return the first row of each distinct combination of codes, and the combination of each row."""
    size = combinations(digits)
    groups = few_groups(digits, rows) if size <= BYTES else None
    if groups is not None:
        return np.array(groups.firsts, np.int64), groups.spread(range(len(groups.firsts)), np.int64)
    combined = np.zeros(rows, dtype=np.int64)
    for codes, each in digits:
        combined = combined * each + codes
        if size > _DIRECT and len(digits) > 1:
            # Renumbering after each keeps products below the square of the number of rows.
            combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    if size <= _DIRECT:
        return _by_table(combined, size)
    _, representatives, numbers = np.unique(combined, return_index=True, return_inverse=True)
    return representatives, numbers.astype(np.int64)


def _by_table(codes: Codes, size: int) -> tuple[Array, Codes]:
    """Do as `grouped`, with a cell per code."""
    representatives = first_rows(codes, size)
    places = np.zeros(size, np.int64)
    places[codes.take(representatives)] = np.arange(len(representatives))
    return representatives, places.take(codes)

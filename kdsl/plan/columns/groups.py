"""Rows by what they have in common: what is asked once for a group is spread over its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kdsl.eval.codes import BYTES, first_places, first_rows
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.columns.column import Array

Codes = NDArray[np.int64]
Digit = tuple[NDArray[np.integer[Any]], int]
"""One thing in which rows differ: a code for each row, and how many codes there are."""
T = TypeVar("T")

MOST: Final = MIN_ROWS - 1
"""The most groups that are few: of more, columns are as fast. All pairs of two such fit into a text."""
_DIRECT: Final = 4096
"""The most combinations of codes that get a cell each."""


class Groups(NamedTuple):
    """Rows of which few are distinct.

    `codes` has a number below `BYTES` for each row, the same for those of a group. `marks` are these numbers
    for the groups and `firsts` their first rows, in the order of these rows.
    """

    codes: NDArray[np.uint8]
    marks: list[int]
    firsts: list[int]

    def spread(self, answers: Iterable[Any], dtype: DTypeLike) -> Array:
        """Return for each row the answer of its group."""
        cells = np.empty(BYTES, dtype)
        for mark, answer in zip(self.marks, answers, strict=True):
            cells[mark] = answer
        return cells.take(self.codes)

    def agree_in(self, codes: Array) -> bool:
        """Tell whether the rows of each group have one code."""
        return not np.count_nonzero(self.spread(map(codes.item, self.firsts), codes.dtype) != codes)

    def divided(self, others: Groups) -> Groups | None:
        """Return the groups of rows that are in one group here and in one of the others; None where there are
        more than `MOST`.
        """
        count = len(others.marks)
        numbers = self.spread(range(0, len(self.marks) * count, count), np.uint8)
        return _few(numbers + others.spread(range(count), np.uint8))


class Grouped(NamedTuple, Generic[T]):
    """A column of which each group has one of the `values`."""

    values: list[T]
    groups: Groups

    def column(self, dtype: DTypeLike) -> Array:
        """Return the value of each row."""
        return self.groups.spread(self.values, dtype)


def few_groups(digits: Iterable[Digit], rows: int) -> Groups | None:
    """Return the groups of rows that agree in all digits; None where there are more than `MOST`."""
    joined = _joined(digits)
    if not joined:
        return _few(np.zeros(rows, np.uint8))
    groups = _few(*joined[0])
    for codes, size in joined[1:]:
        if groups is None:
            return None
        # What differs most often differs together.
        if not groups.agree_in(codes):
            others = _few(codes, size)
            groups = None if others is None else groups.divided(others)
    return groups


def _joined(digits: Iterable[Digit]) -> list[Digit]:
    """Return fewer digits that say the same: neighbours of which a text can have all combinations are one."""
    found: list[Digit] = []
    for codes, size in digits:
        if found and found[-1][1] * size <= BYTES:
            others, count = found.pop()
            found.append((others * size + codes, count * size))
        else:
            found.append((codes, size))
    return found


def _few(codes: Array, size: int = BYTES) -> Groups | None:
    """Return the groups of rows that have one code below `size`; None where there are more than `MOST`."""
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
    """Return how many combinations of codes there may be."""
    return prod([size for _, size in digits])


def grouped(digits: Sequence[Digit], rows: int) -> tuple[Array, Codes]:
    """Return the first row of each distinct combination of codes, and which combination each row has."""
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
    """Do as `grouped` where there are so few codes that each has a cell."""
    representatives = first_rows(codes, size)
    places = np.zeros(size, np.int64)
    places[codes.take(representatives)] = np.arange(len(representatives))
    return representatives, places.take(codes)

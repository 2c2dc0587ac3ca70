"""What filtering found out: which nodes were visited, in which order, and what each was answered.

Columns throughout: nothing here loops over nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import SUCCESS, Status, StatusColumn

_FIRST: Final = {SUCCESS: 0}


class StatusTable:
    """Gives every distinct status a number; 0 is success. It only grows."""

    __slots__ = ("_numbers", "statuses")

    def __init__(self) -> None:
        self.statuses: list[Status] = [SUCCESS]
        # A copy need not hash the status again.
        self._numbers = _FIRST.copy()

    def number(self, status: Status) -> int:
        """Return the number of `status`, giving it one if need be."""
        found = self._numbers.setdefault(status, len(self.statuses))
        if found == len(self.statuses):
            self.statuses.append(status)
        return found

    def joined(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return for each node the number of what two filters answered: of both where both reject it."""
        ids = np.where(first == 0, second, first)
        both = (first != 0) & (second != 0)
        for one, other in np.unique(np.stack((first[both], second[both]), axis=1), axis=0).tolist():
            number = self.number(self.statuses[one].joined(self.statuses[other]))
            ids[both & (first == one) & (second == other)] = number
        return ids

    def translate(self, ids: NDArray[np.int32], statuses: Iterable[Status]) -> NDArray[np.int32]:
        """Renumber `ids`, which index `statuses`, by this table."""
        numbers = np.fromiter((self.number(status) for status in statuses), dtype=np.int32)
        return numbers[ids]


class Verdicts(Struct, frozen=True, eq=False):
    """The visited nodes up to the end of the search.

    `rows` are rows of the snapshot in visiting order; `column` answers for them, every rejection stamped with
    its plugin: `rejected` of them. `feasible` are the rows of the others in visiting order. `error` ended the
    search; the node it happened on is not among the rows.
    """

    rows: NDArray[np.int32]
    column: StatusColumn
    rejected: int
    feasible: NDArray[np.int32]
    error: PluginError | None

    @staticmethod
    def of(rows: NDArray[np.int32], column: StatusColumn, error: PluginError | None = None) -> Verdicts:
        """Return the verdicts of a column."""
        rejected = int(np.count_nonzero(column.ids))
        return Verdicts(rows, column, rejected, rows[column.passed] if rejected else rows, error)

    @staticmethod
    @cache
    def empty() -> Verdicts:
        """Return the verdicts where nobody was asked."""
        nothing = np.empty(0, dtype=np.int32)
        return Verdicts.of(nothing, StatusColumn(nothing, (SUCCESS,)))

    def including(self, other: Verdicts) -> Verdicts:
        """Return these verdicts with the rejections of `other` on nodes that were not visited here."""
        if not len(other.rows):
            return self
        extra = (other.column.ids != 0) & ~np.isin(other.rows, self.rows)
        if not extra.any():
            return self
        table = StatusTable()
        ids = (
            table.translate(self.column.ids, self.column.table),
            table.translate(other.column.ids, other.column.table)[extra],
        )
        rows = np.concatenate((self.rows, other.rows[extra]))
        return Verdicts.of(rows, StatusColumn(np.concatenate(ids), table.statuses), self.error)

"""The results of filtering: the visited nodes in their order, and the status of each.

All data are columns: no code here loops over nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import SUCCESS, Status, StatusColumn, StatusTable

ALL_PASS: Final[Sequence[Status]] = (SUCCESS,)
"""The table of a column without rejections."""
BEHIND_ALL: Final = np.iinfo(np.int32).max
"""A place behind all filters."""
_SHORT: Final = 64
"""Up to so many counts, listing all is faster than finding those that are not 0."""


def numbered_alike(columns: Sequence[StatusColumn]) -> tuple[list[NDArray[np.int32]], Sequence[Status]]:
    """Return the numbers of columns in one common table, and the table, which must not be extended."""
    # Success is 0 in any table.
    tables = [column.table for column in columns if len(column.table) > 1]
    first = tables[0] if tables else ALL_PASS
    for each in tables:
        if each is not first:
            table = StatusTable()
            return [table.translate(column) for column in columns], table
    return [column.ids for column in columns], first


def merged(column: StatusColumn, places: NDArray[np.intp], answers: StatusColumn) -> StatusColumn:
    """Return the column with `answers` for the nodes at some places."""
    (ids, others), table = numbered_alike((column, answers))
    ids = ids.copy()
    ids[places] = others
    return StatusColumn(ids, table)


def joined(column: StatusColumn, other: StatusColumn) -> StatusColumn:
    """Return for each node the status of two filters together: both reasons where both reject it."""
    table = StatusTable()
    first, second = table.translate(column), table.translate(other)
    ids = np.where(first == 0, second, first)
    both = (first != 0) & (second != 0)
    for one, another in np.unique(np.stack((first[both], second[both]), axis=1), axis=0).tolist():
        number = table.number(table[one].joined(table[another]))
        ids[both & (first == one) & (second == another)] = number
    return StatusColumn(ids, table)


def ends_of(column: StatusColumn, places: Mapping[str, int]) -> NDArray[np.int32]:
    """Return for each node the place of the filter that rejected it, `BEHIND_ALL` for the others. `places`
    has the place of each filter.
    """
    ends = np.full(len(column), BEHIND_ALL, np.int32)
    for number in column.used():
        ends[column.ids == number] = places.get(column.table[number].plugin, BEHIND_ALL)
    return ends


class VisitedNodes(Struct, frozen=True, eq=False):
    """The visited nodes up to the end of the search.

    `rows` are rows of the snapshot in visiting order. `column` holds their statuses; every rejection names
    its plugin, and there are `rejected` of them. `feasible` are the rows of the others in visiting order.
    `error` ended the search; its node is not among the rows.
    """

    rows: NDArray[np.intp]
    column: StatusColumn
    rejected: int
    feasible: NDArray[np.intp]
    error: PluginError | None

    @staticmethod
    def of(rows: NDArray[np.intp], column: StatusColumn, error: PluginError | None = None) -> VisitedNodes:
        """Return the visited nodes with the statuses of a column."""
        rejected = int(np.count_nonzero(column.ids))
        return VisitedNodes(rows, column, rejected, rows[column.passed] if rejected else rows, error)

    @staticmethod
    @cache
    def empty() -> VisitedNodes:
        """Return the result without a visited node."""
        return VisitedNodes.of(np.empty(0, np.intp), StatusColumn(np.empty(0, np.int32), ALL_PASS))

    def counted(self) -> list[tuple[Status, int]]:
        """Return each rejection with its number of nodes."""
        table = self.column.table
        return [(table[number], count) for number, count in self.used()]

    def used(self) -> list[tuple[int, int]]:
        """Return the table number of each rejection, and its number of nodes."""
        counts = np.bincount(self.column.ids)
        # A table may hold far more statuses than a column uses.
        if len(counts) > _SHORT:
            return [(number, int(counts[number])) for number in counts.nonzero()[0].tolist() if number]
        return [(number, count) for number, count in enumerate(counts.tolist()) if number and count]

    def including(self, other: VisitedNodes) -> VisitedNodes:
        """Add the rejections of `other` on nodes that were not visited here."""
        if not len(other.rows):
            return self
        extra = (other.column.ids != 0) & ~np.isin(other.rows, self.rows)
        if not extra.any():
            return self
        (ids, others), table = numbered_alike((self.column, other.column))
        rows = np.concatenate((self.rows, other.rows[extra]))
        return VisitedNodes.of(rows, StatusColumn(np.concatenate((ids, others[extra])), table), self.error)

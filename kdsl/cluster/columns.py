"""Amounts of resources in columns: one int64 array for each resource, one cell for each row.

Snapshots are made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.base.resources import capped

Int64Column: TypeAlias = NDArray[np.int64]


def readable(cells: Int64Column) -> Int64Column:
    """Return a view of `cells` that nobody can write through."""
    view = cells.view()
    view.flags.writeable = False
    return view


def grown(cells: Int64Column, rows: int) -> Int64Column:
    """Return a copy of `cells` with `rows` rows, the new ones zero."""
    larger = np.zeros(rows, np.int64)
    larger[: len(cells)] = cells
    return larger


class Columns:
    """Amounts by resource and row, capped at int64. A resource without a column is zero everywhere."""

    def __init__(self) -> None:
        self._rows = 0
        self._cells: dict[str, Int64Column] = {}
        self._views: dict[str, Int64Column] = {}
        self._zeros = readable(np.zeros(0, np.int64))

    @property
    def names(self) -> Iterable[str]:
        """The resources that some row has or had."""
        return self._cells.keys()

    def resize(self, rows: int) -> None:
        """Make room for `rows` rows; they never become fewer."""
        self._rows = rows
        self._zeros = readable(np.zeros(rows, np.int64))
        self._cells = {name: grown(cells, rows) for name, cells in self._cells.items()}
        self._views = {name: readable(cells) for name, cells in self._cells.items()}

    def write(self, row: int, amounts: Mapping[str, int]) -> None:
        """Set the amounts of one row; what is not named becomes zero."""
        if not amounts.keys() <= self._cells.keys():
            for name in [name for name in amounts if name not in self._cells]:
                self._cells[name] = np.zeros(self._rows, np.int64)
                self._views[name] = readable(self._cells[name])
        for name, cells in self._cells.items():
            cells[row] = capped(amounts.get(name, 0))

    def column(self, name: str) -> Int64Column:
        """Return the amounts of resource `name` by row, in its canonical unit; read only."""
        return self._views.get(name, self._zeros)

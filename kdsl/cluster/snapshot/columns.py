"""Amounts of resources in columns: one int64 array for each resource, one cell for each row.

Snapshots consist of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.base.resources import capped

Int64Column: TypeAlias = NDArray[np.int64]
Bounds: TypeAlias = tuple[int, int]
"""The smallest and the largest possible amount."""
_SPARE: Final = 64
"""The columns from which on unused ones are dropped; later twice the used ones more."""
MAX_SUMMED: Final = 2**48
"""The largest amount of a pod that is summed over columns: sums of as many pods as a node may have fit int64.
"""
_NOTHING: Bounds = (0, 0)
_LEAPS = (20, 40, 48, 56)
"""The bits of bounds: most nodes have less than 1,048 cores, counted in thousandths, and 1 TiB of memory."""


def readable(cells: Int64Column) -> Int64Column:
    """Return a read-only view of `cells`."""
    view = cells.view()
    view.flags.writeable = False
    return view


def grown(cells: Int64Column, rows: int) -> Int64Column:
    """Return a copy of `cells` with `rows` rows, the new ones zero."""
    larger = np.zeros(rows, np.int64)
    larger[: len(cells)] = cells
    return larger


class ColumnLayout:
    """The arrays and bounds of several `Columns`: `mark` is replaced whenever one of them is."""

    __slots__ = ("mark",)

    def __init__(self) -> None:
        self.change()

    def change(self) -> None:
        """Replace the mark."""
        self.mark = object()


class Columns:
    """Amounts by resource and row, capped at int64. A resource without a column is zero everywhere.

    `bounds` enclose every amount of a resource that was ever written to a row. They grow in leaps, so that
    conclusions from them stay valid for long. With `holds_blank` they also enclose the zero of rows that were
    never written. `layout` changes with every new array and with new bounds.
    """

    def __init__(self, holds_blank: bool, layout: ColumnLayout) -> None:
        self._layout = layout
        self._rows = 0
        self._holds_zero = holds_blank
        self._bounds: dict[str, Bounds] = {}
        self._cells: dict[str, Int64Column] = {}
        self._views: dict[str, Int64Column] = {}
        self._zeros = readable(np.zeros(0, np.int64))
        self._most = _SPARE

    @property
    def names(self) -> Iterable[str]:
        """The resources that some row has, and some that a row had."""
        return self._cells.keys()

    def resize(self, rows: int) -> None:
        """Set the number of rows to `rows`, which never becomes smaller."""
        self._rows = rows
        self._zeros = readable(np.zeros(rows, np.int64))
        self._cells = {name: grown(cells, rows) for name, cells in self._cells.items()}
        self._views = {name: readable(cells) for name, cells in self._cells.items()}
        self._layout.change()

    def write(self, row: int, amounts: Mapping[str, int]) -> None:
        """Set the amounts of one row; resources that are not named become zero."""
        bounds, named = self._bounds, 0
        for name, cells in self._cells.items():
            amount = amounts.get(name, 0)
            if amount:
                named += 1
            least, largest = bounds[name]
            if not least <= amount <= largest:
                amount = capped(amount)
                bounds[name] = _leap(min(least, amount), max(largest, amount))
                self._layout.change()
            cells[row] = amount
        if named < len(amounts):
            self._add(row, amounts)
        # This row has none of the resources that are named later.
        self._holds_zero = True

    def _add(self, row: int, amounts: Mapping[str, int]) -> None:
        """Add a column for each resource without one, with its amount in one row."""
        if len(self._cells) >= self._most:
            self._drop_unused()
        for name in [name for name in amounts if name not in self._cells]:
            amount = capped(amounts[name])
            self._cells[name] = cells = np.zeros(self._rows, np.int64)
            self._views[name] = readable(cells)
            cells[row] = amount
            elsewhere = 0 if self._holds_zero else amount
            self._bounds[name] = _leap(min(elsewhere, amount), max(elsewhere, amount))
            self._layout.change()

    def _drop_unused(self) -> None:
        """Drop the columns that are zero everywhere. Pods may name new resources for ever."""
        for name in [name for name, cells in self._cells.items() if not cells.any()]:
            del self._cells[name], self._views[name], self._bounds[name]
        self._layout.change()
        self._most = _SPARE + 2 * len(self._cells)

    def clear(self, row: int) -> None:
        """Set the amounts of an unused row to zero."""
        for cells in self._cells.values():
            cells[row] = 0

    def bounds(self, name: str) -> Bounds:
        """Return bounds of the amounts of resource `name`, the same object until they grow."""
        return self._bounds.get(name, _NOTHING)

    def column(self, name: str) -> Int64Column:
        """Return the amounts of resource `name` by row, in its canonical unit; read only."""
        return self._views.get(name, self._zeros)


def _leap(least: int, largest: int) -> Bounds:
    """Return bounds that enclose two amounts. On the side of zero they are as narrow as possible."""
    return least if least >= 0 else -_above(-least), largest if largest <= 0 else _above(largest) - 1


def _above(amount: int) -> int:
    """Return the first bound above a positive amount, at most 2^63."""
    return 1 << next((bits for bits in _LEAPS if amount < 1 << bits), 63)

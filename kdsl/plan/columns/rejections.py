"""The rows of a batch that a predicate rejects, with their failures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdsl.plan.columns.column import Array, Bad, Mask, either, rows_of
from kdsl.plan.columns.groups import grouped
from kdsl.plan.columns.traced import Untraceable
from kdsl.plan.compile.failures import Failure, StatusNumbers


class Rejections:
    """The results for a batch so far: `failures` in rule order, each with its rows. Masks never change."""

    def __init__(self, rows: int) -> None:
        self.failures: list[tuple[Failure, Mask]] = []
        self._rows = rows
        # None are all rows, and no row.
        self._open: Bad = None
        self._bad: Bad = None

    @property
    def bad_rows(self) -> Array | None:
        """The rows that are left to the scalar back end; None if there are none."""
        return None if self._bad is None or not np.count_nonzero(self._bad) else rows_of(self._bad)

    @property
    def is_over(self) -> bool:
        """Return whether no row is open."""
        return self._open is not None and not np.count_nonzero(self._open)

    def mark(self) -> Bad:
        """Return the state for `reopen`, which opens the rows again that are open now."""
        return self._open

    def reopen(self, mark: Bad) -> None:
        """Open rows again, but those that are left to the scalar back end."""
        self._open = mark
        self.close(self._bad)

    def chosen(self) -> Array | None:
        """Return the open rows if it pays to evaluate only those."""
        index = None if self._open is None else rows_of(self._open)
        return None if index is None or len(index) * 2 >= self._rows else index

    def open_rows(self) -> Array:
        return np.arange(self._rows) if self._open is None else rows_of(self._open)

    def reject(self, failure: Failure, rows: Bad) -> None:
        """Add a failure of open rows, None for all of them, and close them."""
        self.add(failure, rows)
        self.close(self._everywhere(rows))

    def add(self, failure: Failure, rows: Bad) -> None:
        """Add a failure of open rows, and leave them open."""
        self.failures.append((failure, self._among_open(rows)))

    def leave(self, rows: Bad) -> None:
        """Leave those rows that are open to the scalar back end."""
        left = self._among_open(rows)
        self._bad = either(self._bad, left)
        self.close(left)

    def has(self, rows: Bad) -> bool:
        """Return whether any row of a mask is open."""
        return bool(np.count_nonzero(self._among_open(rows)))

    def _everywhere(self, rows: Bad) -> Mask:
        return np.ones(self._rows, dtype=np.bool_) if rows is None else rows

    def _among_open(self, rows: Bad) -> Mask:
        if rows is None or self._open is None:
            return self._everywhere(self._open if rows is None else rows)
        return self._open & rows

    def close(self, rows: Bad) -> None:
        """Close rows."""
        if rows is not None:
            self._open = ~rows if self._open is None else self._open & ~rows

    def ids(self, numbers: StatusNumbers, report_all: bool) -> NDArray[np.int32]:
        """Return the number of each row's status; those of bad rows are arbitrary."""
        column = np.zeros(self._rows, dtype=np.int32)
        if not self.failures:
            return column
        if not report_all:
            # The first failure closes a row, so each row is in one mask at most.
            (first, rows), *others = self.failures
            column = np.multiply(rows, numbers.id_of((first,)), dtype=np.int32)
            for failure, rows in others:
                column += np.multiply(rows, numbers.id_of((failure,)), dtype=np.int32)
            return column
        masks = np.array([rows for _, rows in self.failures])
        if not np.count_nonzero(masks):
            return column
        firsts, places = grouped([(mask, 2) for mask in masks], self._rows)
        # Each combination that occurs in a row has a number.
        chosen = [self._failures_at(mask) for mask in masks.T[firsts]]
        return np.array([numbers.id_of(each) for each in chosen], dtype=np.int32)[places]

    def _failures_at(self, held: Mask) -> tuple[Failure, ...]:
        """Return the failures whose masks hold, in rule order, each once."""
        return tuple(dict.fromkeys(self.failures[one][0] for one in held.nonzero()[0].tolist()))


class TracedRejections(Rejections):
    """Rejections while the evaluation is recorded: no decision depends on the rows that are left."""

    @property
    def is_over(self) -> bool:
        return False

    def chosen(self) -> None:
        return None

    def has(self, rows: Bad) -> bool:
        return True

    def leave(self, rows: Bad) -> None:
        if self._among_open(rows).any():
            raise Untraceable

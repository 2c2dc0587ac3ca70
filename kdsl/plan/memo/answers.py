"""The answers for one signature, by node class or by row, computed at first use."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.base.change_log import ChangeLog
from kdsl.base.extremes import least_of
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.first_positions import FEW, first_rows
from kdsl.plan.columns.batch import MIN_ROWS

Compute = Callable[[Rows], NDArray[Any]]
"""Computes one answer for each of some rows."""

MAX_PREFETCHED: Final = 512
"""The most classes that are prefetched; over columns they cost little."""
MAX_PREFETCHED_ROWS: Final = 8192
"""The most rows that are prefetched if each has its own answer and the signature is repeated."""


class _Answers:
    """Answers that are kept by index. `get` and `refresh` are those of the two kinds below.

    `only` is the answer that all nodes shared at the last `refresh`, None if they differ or some are unknown;
    `least` is a lower bound of the known answers, None if there are none.

    INVARIANT: an answer is known only after `_shared` and `least` take it into account. So threads may read
    known answers, and then `_shared`, while another one puts some.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.only: Any = None
        self.least: Any = None
        self._values: NDArray[Any] = np.zeros(0, dtype)
        self._known = np.zeros(0, np.bool_)
        # The answer that all known ones share, else None.
        self._shared: Any = None
        self._is_uniform = True
        # The number of answers so far, and how many of them are not 0.
        self._all = self._nonzero = 0
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._known.nbytes

    @property
    def share(self) -> float:
        """The share of 0 among the answers so far: an estimate for other nodes."""
        return 1 - self._nonzero / self._all if self._all else 1.0

    def _grow(self, size: int) -> None:
        values, known = np.zeros(size, self._values.dtype), np.zeros(size, np.bool_)
        values[: len(self._values)], known[: len(self._known)] = self._values, self._known
        self._values, self._known = values, known

    def _clear(self) -> None:
        self._known[:] = False
        self._shared, self.least, self._is_uniform = None, None, True
        self._all = self._nonzero = 0

    def _put(self, index: NDArray[Any], values: NDArray[Any]) -> None:
        lowest = least_of(values)
        with self._lock:
            self.least = lowest if self.least is None or lowest < self.least else self.least
            if self._is_uniform:
                first = values[0] if self._shared is None else self._shared
                self._is_uniform = bool((values == first).all())
                self._shared = first if self._is_uniform else None
            self._all += len(values)
            self._nonzero += int(np.count_nonzero(values))
            self._values[index] = values
            # Last of all: other threads take what is known.
            self._known[index] = True


class ByNodeClass(_Answers):
    """One answer per node class. It depends on pods only if `on_usage`.

    With `prefetches`, `compute` may be asked about more classes than requested: they will be needed soon, and
    over columns many cost hardly more than few.
    """

    def __init__(
        self, live: LiveSnapshot, dtype: np.dtype[Any], on_usage: bool = True, prefetches: bool = False
    ) -> None:
        super().__init__(dtype)
        self._live = live
        self._prefetches = prefetches
        self._classes = live.node_classes if on_usage else live.fact_classes
        self._generation = self._classes.generation
        # The number of leading classes that are known.
        self._complete = 0

    def refresh(self) -> None:
        """Apply the changes since the last call."""
        classes = self._classes
        size = classes.size
        if self._generation != classes.generation:
            self._generation, self._complete = classes.generation, 0
            self._clear()
        elif self._complete + 1 == size:
            return
        if size > len(self._known):
            # Spare room, since classes come one by one.
            self._grow(size + size // 4)
        left = self._known[self._complete + 1 : size]
        if len(left):
            first = left.argmin()
            self._complete += len(left) if left[first] else int(first)
        self.only = self._shared if self._complete + 1 == size else None

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        """Return one answer per row, and the answer that all rows share, if known.

        `compute` returns missing answers.
        """
        classes = self._classes.ids.take(rows)
        if self._complete + 1 < self._classes.size:
            missing = self._unknown(classes)
            if len(missing):
                unknown, of_unknown = classes[missing], rows[missing]
                if self._prefetches:
                    order = self._live.order
                    all_classes = self._classes.ids.take(order)
                    more = self._unknown(all_classes)[:MAX_PREFETCHED]
                    unknown = np.concatenate((unknown, all_classes[more]))
                    of_unknown = np.concatenate((of_unknown, order[more]))
                unknown, of_unknown = _distinct(unknown, of_unknown, self._classes.size)
                self._put(unknown, compute(of_unknown))
        return self._values.take(classes), self._shared

    def _unknown(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of the classes whose answer is not known."""
        return (~self._known.take(classes)).nonzero()[0]


class ByRow(_Answers):
    """One answer per row, until one of `logs` records a change.

    With `prefetches`, `compute` may be asked about more rows than requested: if the signature is repeated,
    they will be needed soon, as each search begins where the last one ended.
    """

    def __init__(
        self, live: LiveSnapshot, dtype: np.dtype[Any], *logs: ChangeLog[int], prefetches: bool = False
    ) -> None:
        super().__init__(dtype)
        self._live = live
        self._logs = logs
        self._prefetches = prefetches
        self._is_repeated = False
        self._changed = ChangedRows()
        self._missing = True

    def refresh(self) -> None:
        """Apply the changes since the last call."""
        rows = len(self._live.names)
        # The first attempt may be the only one of its signature.
        self._is_repeated = self.least is not None
        if rows > len(self._known):
            self._grow(rows)
        changed = self._changed.take(*self._logs)
        if changed is None:
            self._clear()
        elif changed:
            self._known[changed] = False
        if changed != []:
            self._missing = True
        self.only = None if self._missing else self._shared

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        """Do as `ByNodeClass.get`."""
        if self._missing:
            missing = self._unknown(rows)
            if len(missing):
                # Enough for columns; fewer might be evaluated one by one.
                if self._prefetches and self._is_repeated and len(missing) >= MIN_ROWS:
                    wanted = np.zeros(len(self._known), np.bool_)
                    wanted[missing] = wanted[self._unknown(self._live.order)[:MAX_PREFETCHED_ROWS]] = True
                    missing = wanted.nonzero()[0]
                self._put(missing, compute(missing))
                self._missing = len(self._unknown(self._live.order)) > 0
        return self._values.take(rows), self._shared

    def _unknown(self, rows: Rows) -> Rows:
        return rows[~self._known.take(rows)]


class Uncached:
    """Answers for a new signature: none is kept."""

    only: Final = None
    least: Final = -math.inf
    share: Final = 1.0
    nbytes: Final = 0

    def refresh(self) -> None:
        """Do nothing: there are no answers to update."""

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        """Compute all answers."""
        return compute(rows), None


UNCACHED: Final = Uncached()

Answers: TypeAlias = ByNodeClass | ByRow | Uncached
"""Answers over a live snapshot. Several threads may use `get` between two calls of `refresh`."""


def answers_of(
    live: LiveSnapshot,
    dtype: np.dtype[Any],
    by_node_class: bool,
    on_usage: bool,
    prefetches: bool,
) -> ByNodeClass | ByRow:
    """Return answers by node class or by row, with or without usage."""
    if by_node_class:
        return ByNodeClass(live, dtype, on_usage, prefetches)
    logs = (live.fact_changes, live.usage_changes) if on_usage else (live.fact_changes,)
    return ByRow(live, dtype, *logs, prefetches=prefetches)


def _distinct(
    classes: NDArray[np.intp], rows: NDArray[np.intp], size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each class once, with one of its rows; classes are below `size`."""
    if len(classes) <= FEW:
        # For the usual few, a dictionary is cheapest.
        chosen = dict(zip(classes.tolist(), rows.tolist(), strict=True))
        return np.fromiter(chosen, np.intp), np.fromiter(chosen.values(), np.intp)
    first = first_rows(classes, size)
    return classes[first], rows[first]

"""The answers for one kind of pod, by look or by row: each is computed when it is first asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.changed_rows import ChangedRows, Changes
from kdsl.cluster.snapshot.looks import look_of
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.memo.met import Met

Compute = Callable[[Rows], NDArray[Any]]
"""Computes one answer for each of some rows."""

_MIN_AHEAD: Final = 3
"""Where fewer looks are not known, no others are asked for with them."""
MAX_AHEAD: Final = 512
"""So many looks more than were wanted cost little over columns."""
MAX_ROWS_AHEAD: Final = 8192
"""So many rows more cost little where each has an answer of its own, once a kind of pod comes again."""
MAX_IMAGINED: Final = 1024
"""The most answers for looks that no node has that are kept of a kind of pod."""
_IMAGINED_BYTES: Final = 1024
"""About what one of them takes."""


class Answers(Protocol):
    """Answers over a live snapshot. `get` may be used by several threads between two calls of `refresh`."""

    @property
    def nbytes(self) -> int: ...

    @property
    def only(self) -> Any:
        """The answer that all nodes have, None where they differ or not all are known."""
        ...

    @property
    def least(self) -> Any:
        """No answer that is known is less; None where none is known."""
        ...

    def refresh(self) -> None:
        """Take in what changed since the last time."""
        ...

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        """Return one answer per row, and the answer that all rows have where that is known.

        `compute` is asked for answers that are not known.
        """
        ...

    def imagine(self, row: int, node: NodeInfo, compute: Compute) -> Any:
        """Return the answer if a node had other pods, as `node` of the row has; `compute` sees it so."""
        ...


class _Column:
    """Values by index. `only` is the value that all known ones have, None where they differ; `least` is one
    that none of them is below.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.values: NDArray[Any] = np.zeros(0, dtype)
        self.known = np.zeros(0, np.bool_)
        self.only: Any = None
        self.least: Any = None
        self._is_uniform = True

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.known.nbytes

    def grow(self, size: int) -> None:
        self.values, self.known = _grown(self.values, size), _grown(self.known, size)

    def clear(self) -> None:
        self.known[:] = False
        self.only, self.least, self._is_uniform = None, None, True

    def put(self, index: NDArray[Any], values: NDArray[Any]) -> None:
        self.values[index] = values
        self.known[index] = True
        lowest = values.min()
        self.least = lowest if self.least is None or lowest < self.least else self.least
        if self._is_uniform:
            first = values[0] if self.only is None else self.only
            self._is_uniform = bool((values == first).all())
            self.only = first if self._is_uniform else None


class ByLook:
    """Rows that look alike share an answer; unless it depends `on_usage`, pods make no difference.

    With `looks_ahead`, `compute` may be asked about more looks than are wanted: where some are not known,
    others will be asked for soon, and over columns many cost hardly more than few.
    """

    def __init__(
        self,
        live: LiveSnapshot,
        dtype: np.dtype[Any],
        on_usage: bool = True,
        looks_ahead: bool = False,
    ) -> None:
        self._live = live
        self._on_usage = on_usage
        self._looks_ahead = looks_ahead
        self._looks = live.looks if on_usage else live.fact_looks
        self._generation = self._looks.generation
        self._column = _Column(dtype)
        # So many looks are known to be known.
        self._complete = 0
        self._imagined: dict[Hashable, Any] = {}

    @property
    def nbytes(self) -> int:
        return self._column.nbytes + _IMAGINED_BYTES * len(self._imagined)

    @property
    def only(self) -> Any:
        return self._column.only if self._complete + 1 >= len(self._looks) else None

    @property
    def least(self) -> Any:
        return self._column.least

    def refresh(self) -> None:
        looks, column = self._looks, self._column
        if self._generation != looks.generation:
            self._generation, self._complete = looks.generation, 0
            column.clear()
        size = len(looks)
        if size > len(column.known):
            # Twice as many as there are: looks come one by one.
            column.grow(2 * size)
        while self._complete + 1 < size and column.known[self._complete + 1]:
            self._complete += 1

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        column = self._column
        looks = self._looks.ids.take(rows)
        if self._complete + 1 < len(self._looks):
            chosen = self._unknown(looks, rows)
            if chosen:
                if self._looks_ahead and len(chosen) >= _MIN_AHEAD:
                    order = self._live.order
                    others = self._unknown(self._looks.ids.take(order), order, MAX_AHEAD)
                    # So many are worth columns; fewer might be asked one by one.
                    if len(others) >= MIN_ROWS:
                        chosen |= others
                column.put(np.fromiter(chosen, np.intp), compute(np.fromiter(chosen.values(), np.int32)))
        return column.values.take(looks), column.only

    def _unknown(self, looks: NDArray[np.intp], rows: Rows, most: int | None = None) -> dict[int, int]:
        """Return those of the looks of some rows that are not known, with a row of each; of `most` rows."""
        missing = (~self._column.known.take(looks)).nonzero()[0]
        if not len(missing):
            return {}
        # Of a few, which is the rule, a dictionary is made in no time.
        return dict(zip(looks[missing[:most]].tolist(), rows[missing[:most]].tolist(), strict=True))

    def imagine(self, row: int, node: NodeInfo, compute: Compute) -> Any:
        if not self._on_usage:
            return self.get(np.array([row], np.int32), compute)[0][0]
        # What has been imagined most often never comes about: these looks get no numbers.
        look = look_of(node)
        answer = self._imagined.get(look)
        if answer is None:
            if len(self._imagined) >= MAX_IMAGINED:
                self._imagined.clear()
            answer = self._imagined[look] = compute(np.array([row], np.int32))[0]
        return answer


class ByRow:
    """Every row has an answer of its own, until one of `logs` tells of a change.

    With `looks_ahead`, `compute` may be asked about more rows than are wanted: of a kind of pod that comes
    again the others will be asked for soon, since each search begins where the last one ended.
    """

    def __init__(
        self, live: LiveSnapshot, dtype: np.dtype[Any], *logs: Changes, looks_ahead: bool = False
    ) -> None:
        self._live = live
        self._logs = logs
        self._on_usage = live.usage_changes in logs
        self._looks_ahead = looks_ahead
        self._comes_again = False
        self._changed = ChangedRows()
        self._column = _Column(dtype)
        self._missing = True

    @property
    def nbytes(self) -> int:
        return self._column.nbytes

    @property
    def only(self) -> Any:
        return None if self._missing else self._column.only

    @property
    def least(self) -> Any:
        return self._column.least

    def refresh(self) -> None:
        column, rows = self._column, len(self._live.names)
        # The first attempt may be the only one of its kind.
        self._comes_again = column.least is not None
        if rows > len(column.known):
            column.grow(rows)
        changed = self._changed.take(*self._logs)
        if changed is None:
            column.clear()
        elif changed:
            column.known[changed] = False
        if changed != []:
            self._missing = True

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        column = self._column
        if self._missing:
            missing = self._unknown(rows)
            if len(missing):
                # So many are worth columns; fewer might be asked one by one.
                if self._looks_ahead and self._comes_again and len(missing) >= MIN_ROWS:
                    asked = np.zeros(len(column.known), np.bool_)
                    asked[missing] = asked[self._unknown(self._live.order)[:MAX_ROWS_AHEAD]] = True
                    missing = np.flatnonzero(asked).astype(np.int32)
                column.put(missing, compute(missing))
                self._missing = len(self._unknown(self._live.order)) > 0
        return column.values.take(rows), column.only

    def _unknown(self, rows: Rows) -> Rows:
        """Return those of some rows whose answers are not known."""
        return rows[~self._column.known.take(rows)]

    def imagine(self, row: int, node: NodeInfo, compute: Compute) -> Any:
        rows = np.array([row], np.int32)
        return compute(rows)[0] if self._on_usage else self.get(rows, compute)[0][0]


class Unkept:
    """Answers for a kind of pod that was never met before, and may never be again: nothing is kept but what
    what-ifs ask, which ask about many nodes one by one.
    """

    def __init__(self, keep: Callable[[], Answers]) -> None:
        self._keep = keep
        self._kept: Answers | None = None
        self.least: Any = None

    @property
    def nbytes(self) -> int:
        return 0 if self._kept is None else self._kept.nbytes

    @property
    def only(self) -> None:
        return None

    def refresh(self) -> None:
        """Do nothing: there is nothing that could be out of date but what what-ifs asked."""
        if self._kept is not None:
            self._kept.refresh()

    def get(self, rows: Rows, compute: Compute) -> tuple[NDArray[Any], Any]:
        values = compute(rows)
        self.least = values.min(initial=0)
        return values, None

    def imagine(self, row: int, node: NodeInfo, compute: Compute) -> Any:
        kept = self._kept
        if kept is None:
            kept = self._keep()
            kept.refresh()
            # Other threads see it when it is ready.
            self._kept = kept
        return kept.imagine(row, node, compute)


def answers_of(
    live: LiveSnapshot, dtype: np.dtype[Any], by_look: bool, on_usage: bool, looks_ahead: bool, is_new: bool
) -> Answers:
    """Return answers that depend on the look of a node or more, and on its usage or not: kept for a kind of
    pod that comes again, and not for one that `is_new`.
    """
    if is_new:
        return Unkept(lambda: answers_of(live, dtype, by_look, on_usage, looks_ahead, False))
    if by_look:
        return ByLook(live, dtype, on_usage, looks_ahead)
    logs = (live.fact_changes, live.usage_changes) if on_usage else (live.fact_changes,)
    return ByRow(live, dtype, *logs, looks_ahead=looks_ahead)


def _grown(cells: NDArray[Any], size: int) -> NDArray[Any]:
    larger = np.zeros(size, cells.dtype)
    larger[: len(cells)] = cells
    return larger


class Sized(Protocol):
    """What is kept of one kind of pod."""

    @property
    def nbytes(self) -> int: ...


K = TypeVar("K", bound=Sized)

MAX_BYTES: Final = 32 << 20
"""What is kept of the kinds of pods, for the predicates of a profile and as much for its scores; the kinds
used longest ago go first. `MIN_KINDS` stay in any case.
"""
MIN_KINDS: Final = 4
_OVERHEAD: Final = 4096
"""About what a kind takes beside its columns, in bytes."""


class Kinds(Generic[K]):
    """What is known of the kinds of pods seen lately, by signature."""

    def __init__(self) -> None:
        self._met = Met()
        self._kinds: OrderedDict[Hashable, K] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0
        self._latest: tuple[Hashable, K | None] = (None, None)
        self._lock = Lock()

    def of(self, signature: Hashable, is_good: Callable[[K], bool], make: Callable[[bool], K]) -> K:
        """Return what is known of a kind; `make` is told whether it was never met before: it is not kept
        then.
        """
        if not self._met.meet(signature):
            return make(True)
        return self.get(signature, is_good, lambda: make(False))

    def get(self, signature: Hashable, is_good: Callable[[K], bool], make: Callable[[], K]) -> K:
        """Return what is known of a kind, made anew where it is not good any more."""
        latest, kind = self._latest
        if kind is not None and latest == signature and is_good(kind):
            return kind
        with self._lock:
            kind = self._kinds.get(signature)
            if kind is None or not is_good(kind):
                kind = self._kinds[signature] = make()
            self._kinds.move_to_end(signature)
            size = kind.nbytes + _OVERHEAD
            self._bytes += size - self._sizes.get(signature, 0)
            self._sizes[signature] = size
            while self._bytes > MAX_BYTES and len(self._kinds) > MIN_KINDS:
                oldest, _ = self._kinds.popitem(last=False)
                self._bytes -= self._sizes.pop(oldest)
            self._latest = (signature, kind)
            return kind

    def clear(self) -> None:
        """Forget all kinds."""
        with self._lock:
            self._met.clear()
            self._kinds.clear()
            self._sizes.clear()
            self._bytes = 0
            self._latest = (None, None)

"""One number per row and their sums per domain, recounted where a row changed.

A tally never counts a row twice at one version. It is what `topology(key).count(…)` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.changes import ChangedRows
from kdsl.cluster.node import NodeInfo
from kdsl.cluster.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.tallies.domains import NO_DOMAIN, DomainColumn, grown
from kdsl.plan.values import INT_MAX, EvalError

_REBUILD: Final = 8
"""Sums are made anew where more than one row in this many changed."""


class Counted(NamedTuple):
    """What counting one node gave: whether it takes part, its number, the steps it took, and its error."""

    takes_part: bool
    amount: int
    steps: int
    error: str = ""


NOT_COUNTED: Final = Counted(False, 0, 0)


class Measure(Protocol):
    """Counts a node by itself: the same node always gives the same. It must not raise."""

    def __call__(self, node: NodeInfo, /) -> Counted: ...


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums per domain: `amounts` and `nodes` (how many take part) by the numbers in `numbers`.

    A domain in which no node takes part is none. `steps` is what counting all of it took. `ids` are the
    numbers of the domains by row, None over an overlay.
    """

    numbers: Mapping[str, int]
    amounts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    steps: int
    ids: NDArray[np.int32] | None = None

    def of(self, domain: str) -> int:
        """Return the sum of a domain; 0 where there is none of the name."""
        number = self.numbers.get(domain)
        return 0 if number is None else int(self.amounts[number])

    def present(self) -> NDArray[np.int64]:
        """Return the sums of the domains that there are."""
        return self.amounts[self.nodes > 0]


class Tally:
    """Counts over the rows of a live snapshot.

    `amounts` has one int64 per row, 0 for rows that do not take part; `sums` are those of the last refresh.
    """

    def __init__(self, column: DomainColumn) -> None:
        self.amounts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._column = column
        self._generation = column.generation
        self._changed = ChangedRows()
        self._domains: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._steps: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        # The sum of the steps, and a number that no amount is beyond.
        self._spent = 0
        self._largest = 0
        self._errors: dict[int, str] = {}
        self._sums: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._nodes: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def nbytes(self) -> int:
        """What the columns take."""
        columns = (self.amounts, self._domains, self._steps, self._sums, self._nodes)
        return sum(column.nbytes for column in columns)

    def sums(self, snapshot: Snapshot, measure: Measure) -> Sums:
        """Return the sums over a snapshot, live or an overlay; EvalError where a node could not be counted.

        INVARIANT: every `measure` that a tally is given counts alike. They come with the attempts that ask.
        """
        self._refresh(snapshot.live, measure)
        if snapshot.is_overlay:
            return self._corrected(snapshot, measure)
        self._complain(self._errors, snapshot)
        return Sums(self._column.numbers, self._sums, self._nodes, self._spent, self._column.ids)

    def _refresh(self, live: LiveSnapshot, measure: Measure) -> None:
        self._column.refresh(live)
        changed = self._changed.take(live.fact_changes, live.usage_changes)
        is_new = self._generation != self._column.generation
        if changed == [] and not is_new:
            return
        rows = len(live.names)
        for name, fill in (("amounts", 0), ("_domains", NO_DOMAIN), ("_steps", 0)):
            setattr(self, name, grown(getattr(self, name), rows, fill))
        stale = np.arange(rows) if changed is None else np.array(changed, dtype=np.intp)
        is_new = is_new or len(stale) * _REBUILD > rows
        if not is_new:
            self._add(stale, -1)
        for row in stale.tolist():
            self._count(row, measure(live.info(row)) if live.names[row] else NOT_COUNTED)
        if is_new:
            self._rebuild()
        else:
            self._make_room()
            self._add(stale, 1)

    def _count(self, row: int, counted: Counted) -> None:
        self._spent += counted.steps - int(self._steps[row])
        self._largest = max(self._largest, abs(counted.amount))
        self.amounts[row], self._steps[row] = counted.amount, counted.steps
        self._domains[row] = self._column.ids[row] if counted.takes_part else NO_DOMAIN
        self._errors.pop(row, None)
        if counted.error:
            self._errors[row] = counted.error

    def _rebuild(self) -> None:
        # Rows that take part have the number of their domain in the column; it may be another one now.
        self._domains = np.where(self._domains == NO_DOMAIN, NO_DOMAIN, self._column.ids)
        self._generation = self._column.generation
        self._sums = np.zeros(len(self._column), dtype=np.int64)
        self._nodes = np.zeros(len(self._column), dtype=np.int64)
        self._add(np.arange(len(self._domains)), 1)

    def _make_room(self) -> None:
        domains = len(self._column)
        self._sums, self._nodes = grown(self._sums, domains, 0), grown(self._nodes, domains, 0)

    def _add(self, rows: NDArray[np.intp], sign: int) -> None:
        rows = rows[self._domains[rows] != NO_DOMAIN]
        np.add.at(self._sums, self._domains[rows], sign * self.amounts[rows])
        np.add.at(self._nodes, self._domains[rows], sign)

    def _corrected(self, overlay: Snapshot, measure: Measure) -> Sums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        numbers = self._column.numbers
        amounts, nodes, steps = self._sums.copy(), self._nodes.copy(), self._spent
        errors = {row: error for row, error in self._errors.items() if row not in overlay.changed_rows}
        for row in sorted(overlay.changed_rows):
            steps -= int(self._steps[row])
            before = int(self._domains[row])
            if before != NO_DOMAIN:
                amounts[before] -= self.amounts[row]
                nodes[before] -= 1
            info = overlay.info(row)
            counted = measure(info)
            steps += counted.steps
            if counted.error:
                errors[row] = counted.error
            if not counted.takes_part:
                continue
            domain = info.labels[self._column.key]
            if domain not in numbers:
                numbers = {**numbers, domain: len(amounts)}
                amounts, nodes = np.append(amounts, 0), np.append(nodes, 0)
            amounts[numbers[domain]] += counted.amount
            nodes[numbers[domain]] += 1
        self._complain(errors, overlay)
        return Sums(numbers, amounts, nodes, steps)

    def _complain(self, errors: Mapping[int, str], snapshot: Snapshot) -> None:
        """Raise the error of the first node that has one, in visiting order."""
        if errors:
            raise EvalError(next(errors[row] for row in snapshot.order.tolist() if row in errors))
        if self._largest * len(self.amounts) > INT_MAX:
            # It may have been an amount that is no more.
            self._largest = max(int(self.amounts.max(initial=0)), -int(self.amounts.min(initial=0)))
        if self._largest * len(self.amounts) > INT_MAX:
            # Where the amounts are that large, any sum of them may be out of range.
            raise EvalError("integer overflow")

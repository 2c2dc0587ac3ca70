"""One number per row and their sums per domain, recounted where a row changed.

A tally never counts a row twice at one version. It is what `topology(key).count(…)` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.changes import ChangedRows
from kdsl.cluster.node import NodeInfo
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.tallies.domains import NO_DOMAIN, DomainColumn, grown
from kdsl.plan.tallies.seen import Pods, Seen
from kdsl.plan.tallies.sums import Sums
from kdsl.plan.values import INT_MAX, EvalError

_PER_ROW: Final = 84
"""What a tally takes for a row, in bytes, beside the sums."""
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
    """Counts a node by itself: the same node always gives the same. It must not raise.

    `before` is what counting gave before the pods `new` came to the node, which else is as it was.
    """

    def __call__(self, node: NodeInfo, before: Counted | None = None, new: Pods = (), /) -> Counted: ...


class Screen(Protocol):
    """Tells which of some nodes of a live snapshot take part, and the steps that each took at most.

    None where they have to be measured one by one. One that takes part counts 0 until its pods are counted.
    """

    def __call__(self, nodes: NodeSet, /) -> tuple[NodeSet, int] | None: ...


class Tally:
    """Counts over the rows of a live snapshot. `amounts` has one int64 per row, 0 for rows that do not take
    part.
    """

    def __init__(self, column: DomainColumn) -> None:
        self.amounts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._column = column
        self._generation = column.generation
        self._changed = ChangedRows()
        self._domains: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._steps: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._seen = Seen()
        self._version = -1
        # A number that no amount is beyond.
        self._largest = 0
        self._errors: dict[int, str] = {}
        self._sums = Sums(column)

    @property
    def nbytes(self) -> int:
        """What the columns take."""
        return _PER_ROW * len(self.amounts) + self._sums.nbytes

    def sums(self, snapshot: Snapshot, measure: Measure, screen: Screen) -> Sums:
        """Return the sums over a snapshot, live or an overlay; EvalError where a node could not be counted.
        The first count begins with `screen`.

        Those of the live snapshot are good until the next call.

        INVARIANT: every `measure` that a tally is given counts alike. They come with the attempts that ask.
        """
        live = snapshot.live
        if self._version != live.version:
            self._refresh(live, measure, screen)
            self._version = live.version
        if snapshot.is_overlay:
            return self._corrected(snapshot, measure)
        self._complain(self._errors, snapshot)
        return self._sums

    def _refresh(self, live: LiveSnapshot, measure: Measure, screen: Screen) -> None:
        self._column.refresh(live)
        changed = self._changed.take(live.fact_changes, live.usage_changes)
        is_new = self._generation != self._column.generation
        if changed == [] and not is_new:
            return
        rows = len(live.names)
        is_first = not len(self.amounts)
        if rows > len(self.amounts):
            self.amounts = grown(self.amounts, rows, 0)
            self._domains = grown(self._domains, rows, NO_DOMAIN)
            self._steps = grown(self._steps, rows, 0)
        stale: Sequence[int] = range(rows) if changed is None else changed
        if is_first:
            is_new = True
            screened = self._screened(live, screen)
            stale = stale if screened is None else screened
        found = [(row, self._counted(live, row, measure)) for row in stale]
        self._largest = max([self._largest, *(abs(counted.amount) for _, counted in found)])
        # Sums that may be out of range are not asked for, and numpy lets them wrap.
        is_new = is_new or len(found) * _REBUILD > rows or self._largest * rows > INT_MAX
        self._sums.refresh(self._column)
        for row, counted in found:
            self._put(row, counted, not is_new)
        if is_new:
            self._rebuild()

    def _screened(self, live: LiveSnapshot, screen: Screen) -> list[int] | None:
        """Find out at once which nodes take part. Return the rows that have pods to count, None where that
        did not work.
        """
        ids, order = self._column.ids, live.order
        asked = NodeSet(live, order[ids[order] != NO_DOMAIN])
        found = screen(asked)
        if found is None:
            return None
        chosen, steps = found[0].rows, found[1]
        self._domains[chosen] = ids[chosen]
        self._steps[asked.rows] = steps
        if steps:
            # Nodes that get a pod need not be asked again.
            self._seen.begin(live)
        # Most nodes have nothing to count.
        rows: list[int] = chosen[live.pod_counts[chosen] > 0].tolist()
        return rows

    def _counted(self, live: LiveSnapshot, row: int, measure: Measure) -> Counted:
        """Count a row; of a node that has got further pods, those alone."""
        _, node, new = self._seen.look(live, row)
        if node is None:
            return NOT_COUNTED
        if new is None or row in self._errors:
            return measure(node)
        takes_part = self._domains.item(row) != NO_DOMAIN
        return measure(node, Counted(takes_part, self.amounts.item(row), self._steps.item(row)), new)

    def _put(self, row: int, counted: Counted, moves: bool) -> None:
        """Take in what counting a row gave; the sums follow where it `moves`."""
        takes_part, amount, steps, error = counted
        before, was, took = self._domains.item(row), self.amounts.item(row), self._steps.item(row)
        domain = self._column.ids.item(row) if takes_part else NO_DOMAIN
        if moves and domain != before:
            if before != NO_DOMAIN:
                self._sums.move(before, was, -1)
            if domain != NO_DOMAIN:
                self._sums.move(domain, amount, 1)
        elif moves and amount != was and domain != NO_DOMAIN:
            self._sums.change(domain, amount - was)
        self._sums.steps += steps - took
        self.amounts[row], self._domains[row], self._steps[row] = amount, domain, steps
        if self._errors:
            self._errors.pop(row, None)
        if error:
            self._errors[row] = error

    def _rebuild(self) -> None:
        # Rows that take part have the number of their domain in the column; it may be another one now.
        self._domains = np.where(self._domains == NO_DOMAIN, NO_DOMAIN, self._column.ids)
        self._generation = self._column.generation
        self._sums = Sums.counted(self._column, self._domains, self.amounts)
        self._sums.steps = int(self._steps.sum())

    def _corrected(self, overlay: Snapshot, measure: Measure) -> Sums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        found = {row: measure(overlay.info(row)) for row in sorted(overlay.changed_rows)}
        errors = {row: error for row, error in self._errors.items() if row not in found}
        errors |= {row: counted.error for row, counted in found.items() if counted.error}
        self._complain(errors, overlay, *(abs(counted.amount) for counted in found.values()))
        sums = self._sums.of_overlay()
        for row, counted in found.items():
            before = int(self._domains[row])
            if before != NO_DOMAIN:
                sums.move(before, int(self.amounts[row]), -1)
            if counted.takes_part:
                domain = overlay.info(row).labels[self._column.key]
                sums.move(sums.number_of(domain), counted.amount, 1)
            sums.steps += counted.steps - int(self._steps[row])
        return sums

    def _complain(self, errors: Mapping[int, str], snapshot: Snapshot, *others: int) -> None:
        """Raise the error of the first node that has one, in visiting order, or that of sums which are too
        large with the `others` among the amounts.
        """
        if errors:
            raise EvalError(next(errors[row] for row in snapshot.order.tolist() if row in errors))
        if self._largest * len(self.amounts) > INT_MAX:
            # It may have been an amount that is no more.
            self._largest = max(int(self.amounts.max(initial=0)), -int(self.amounts.min(initial=0)))
        if max(self._largest, *others, 0) * len(self.amounts) > INT_MAX:
            # Where the amounts are that large, any sum of them may be out of range.
            raise EvalError("integer overflow")

"""One number per row and their sums per domain: of a row that gets pods, those alone are counted.

A tally never counts a pod twice at one version. It is what `topology(key).count(…)` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows, Snapshot
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError
from kdsl.plan.counts.arrivals import Arrival, Arrivals
from kdsl.plan.counts.domains import NO_DOMAIN, domains_of
from kdsl.plan.counts.kept import Kept
from kdsl.plan.counts.measures import NOT_COUNTED, Counted, Known, Measure
from kdsl.plan.counts.sums import Sums

_PER_ROW: Final = 20
"""What a tally takes for a row, in bytes, beside the sums."""
_PER_LOOK: Final = 256
"""About what it takes to know a look of pods, in bytes."""
_REBUILD: Final = 8
"""Sums are made anew where more than one row in this many changed."""


class Tally(Kept):
    """Counts over the rows of a live snapshot. `amounts` has one int64 per row, 0 for rows that do not take
    part.
    """

    def __init__(self, live: LiveSnapshot, topology_key: str) -> None:
        super().__init__()
        self._key = topology_key
        self._column = domains_of(live, topology_key)
        self._position = -1
        self._known: Known = {}
        self._clear(0)

    def _clear(self, rows: int) -> None:
        self.amounts: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self._domains: NDArray[np.int32] = np.full(rows, NO_DOMAIN, dtype=np.int32)
        self._steps: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        # A number that no amount is beyond.
        self._largest = 0
        self._errors: dict[int, str] = {}
        self._sums = Sums(self._column)
        # Whether the sums have to be made anew. They do not follow what happens to rows then.
        self._is_stale = True

    def sums(self, snapshot: Snapshot, arrivals: Arrivals, measure: Measure) -> Sums:
        """Return the sums over a snapshot, live or an overlay; EvalError where a node could not be counted.

        Those of the live snapshot are good until the next call.

        INVARIANT: every `measure` that a tally is given counts alike. They come with the attempts that ask.
        """
        live = snapshot.live
        if self.version != live.version:
            self._refresh(live, arrivals, measure)
            self.version = live.version
        if snapshot.is_overlay:
            return self._corrected(snapshot, measure)
        if self._errors or not self._fits:
            self._complain(self._errors, snapshot)
        return self._sums

    def _refresh(self, live: LiveSnapshot, arrivals: Arrivals, measure: Measure) -> None:
        came, looks = arrivals.since(self._position), len(self._known)
        self._position = arrivals.position
        if came is None:
            self._begin(live, measure)
        elif came:
            self._follow(live, came, measure)
        if self._is_stale:
            self._rebuild()
        elif len(self._known) != looks:
            self._note_size()

    def _begin(self, live: LiveSnapshot, measure: Measure) -> None:
        """Count all nodes."""
        self._column = domains_of(live, self._key)
        self._clear(len(live.names))
        ids = self._column.codes
        asked = NodeSet(live, live.order[ids[live.order] != NO_DOMAIN])
        found = measure.screen(asked)
        if found is None:
            self._count(live, asked.rows.tolist(), measure)
        else:
            rows, steps = found[0].rows, found[1]
            self._domains[rows] = ids[rows]
            self._steps[asked.rows] = steps
            # Most nodes have nothing to count.
            self._count_first(live, rows[live.pod_counts.take(rows) > 0], measure)

    def _count_first(self, live: LiveSnapshot, rows: Rows, measure: Measure) -> None:
        """Count the pods of rows that take part."""
        if not measure.on_facts:
            self._count(live, rows.tolist(), measure)
            return
        pods = [live.info(row).pods for row in rows.tolist()]
        found = list(map(measure.further, pods, self._steps[rows].tolist(), repeat(self._known)))
        left = [row for row, each in zip(rows.tolist(), found, strict=True) if each is None]
        self._steps[rows] = [0 if each is None else each[1] for each in found]
        self.amounts[rows] = amounts = [0 if each is None else each[0] for each in found]
        self._largest = max(map(abs, amounts), default=0)
        self._count(live, left, measure)

    def _follow(self, live: LiveSnapshot, came: Sequence[Arrival], measure: Measure) -> None:
        """Count what came to rows, for some of them all that they have."""
        if len(came) * _REBUILD > len(self.amounts) or not self._fits:
            self._is_stale = True
        # In order, each once. They are counted with what came later, too.
        again: dict[int, None] = {}
        domains, taken, known = self._domains, self._steps, self._known
        can_add, further = measure.on_facts, measure.further
        for row, pods in came:
            if pods is None or row in again or row in self._errors or not can_add:
                again[row] = None
            elif (domain := domains.item(row)) != NO_DOMAIN:
                before = taken.item(row)
                found = further(pods, before, known)
                if found is None or (found[0] and not self._add(row, domain, found[0])):
                    again[row] = None
                elif found[1] != before:
                    taken[row] = found[1]
                    self._sums.steps += found[1] - before
        if again:
            self._grow(live)
            self._count(live, again, measure)

    def _grow(self, live: LiveSnapshot) -> None:
        """Take in new rows and domains."""
        self._column = column = domains_of(live, self._key)
        missing = len(live.names) - len(self.amounts)
        if missing > 0:
            self.amounts = np.pad(self.amounts, (0, missing))
            self._domains = np.pad(self._domains, (0, missing), constant_values=NO_DOMAIN)
            self._steps = np.pad(self._steps, (0, missing))
        if column.numbers is self._sums.numbers:
            self._sums.refresh(column)
            self._note_size()
        else:
            self._is_stale = True

    @property
    def _fits(self) -> bool:
        """Tell whether any sum of amounts is in range. Others are not asked for, and numpy lets them wrap."""
        return self._largest * len(self.amounts) <= INT_MAX

    def _note_size(self) -> None:
        columns = _PER_ROW * len(self.amounts) + self._sums.nbytes
        self.nbytes = columns + _PER_LOOK * len(self._known)

    def _count(self, live: LiveSnapshot, rows: Iterable[int], measure: Measure) -> None:
        """Count all that rows have."""
        for row in rows:
            has_node = bool(live.names[row])
            self._put(row, measure.whole(live.info(row), self._known) if has_node else NOT_COUNTED)

    def _add(self, row: int, domain: int, more: int) -> bool:
        """Add to the amount of a row that takes part. Return whether that is in range."""
        amount = self.amounts.item(row) + more
        if not -self._largest <= amount <= self._largest:
            if not INT_MIN <= amount <= INT_MAX:
                return False
            self._note_amount(amount)
        self.amounts[row] = amount
        if not self._is_stale:
            self._sums.change(domain, more)
        return True

    def _note_amount(self, amount: int) -> None:
        if abs(amount) > self._largest:
            self._largest = abs(amount)
            if not self._fits:
                self._is_stale = True

    def _put(self, row: int, counted: Counted) -> None:
        """Take in what counting a whole row gave."""
        takes_part, amount, steps, error = counted
        before, was, took = self._domains.item(row), self.amounts.item(row), self._steps.item(row)
        domain = self._column.codes.item(row) if takes_part else NO_DOMAIN
        self._note_amount(amount)
        if not self._is_stale and (before, was) != (domain, amount):
            if before != NO_DOMAIN:
                self._sums.move(before, was, -1)
            if domain != NO_DOMAIN:
                self._sums.move(domain, amount, 1)
        self._sums.steps += steps - took
        self.amounts[row], self._domains[row], self._steps[row] = amount, domain, steps
        self._errors.pop(row, None)
        if error:
            self._errors[row] = error

    def _rebuild(self) -> None:
        # Rows that take part have the number of their domain in the column; it may be another one now.
        self._domains = np.where(self._domains == NO_DOMAIN, NO_DOMAIN, self._column.codes)
        self._sums = Sums.counted(self._column, self._domains, self.amounts)
        self._sums.steps = int(self._steps.sum())
        self._is_stale = False
        self._note_size()

    def _corrected(self, overlay: Snapshot, measure: Measure) -> Sums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        found = {row: measure.whole(overlay.info(row), self._known) for row in sorted(overlay.changed_rows)}
        errors = {row: error for row, error in self._errors.items() if row not in found}
        errors |= {row: counted.error for row, counted in found.items() if counted.error}
        self._complain(errors, overlay, *(abs(counted.amount) for counted in found.values()))
        sums = self._sums.of_overlay()
        for row, counted in found.items():
            before = int(self._domains[row])
            if before != NO_DOMAIN:
                sums.move(before, int(self.amounts[row]), -1)
            if counted.takes_part:
                domain = overlay.info(row).labels[self._key]
                sums.move(sums.number_of(domain), counted.amount, 1)
            sums.steps += counted.steps - int(self._steps[row])
        return sums

    def _complain(self, errors: Mapping[int, str], snapshot: Snapshot, *others: int) -> None:
        """Raise the error of the first node that has one, in visiting order, or that of sums which are too
        large with the `others` among the amounts.
        """
        if errors:
            raise EvalError(next(errors[row] for row in snapshot.order.tolist() if row in errors))
        if not self._fits:
            # It may have been an amount that is no more.
            self._largest = max(int(self.amounts.max(initial=0)), -int(self.amounts.min(initial=0)))
        if max(self._largest, *others, 0) * len(self.amounts) > INT_MAX:
            # Where the amounts are that large, any sum of them may be out of range.
            raise EvalError("integer overflow")

"""One number per row and the sums per domain. If a row gets pods, only those are counted.

A tally counts each pod at most once per version. `topology(key).count(…)` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.columns import MAX_SUMMED
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError
from kdsl.plan.counts.arrivals import Arrival, Arrivals
from kdsl.plan.counts.measures import MAX_POD_KEYS, NOT_COUNTED, Measure, NodeCount, PodAnswers
from kdsl.plan.counts.pod_index import PodIndex
from kdsl.plan.counts.selected import counts_of_selected
from kdsl.plan.counts.sums import NO_DOMAIN, Sums, domains_of

_PER_ROW: Final = 20
"""The bytes of a tally per row, without the sums."""
_PER_POD_KEY: Final = 256
"""The approximate bytes of a remembered pod key."""
_REBUILD: Final = 8
"""The share of rows: the sums are rebuilt if more than one in so many rows changed."""
_FEW_ARRIVALS: Final = 40
"""A count from the index of pods costs as much as so many arrivals, and one for each pod that it reads."""


class Tally:
    """Counts over the rows of a live snapshot. `domains` are the numbers of their domains, `NO_DOMAIN` if a
    row takes no part; its number in `amounts` is 0 then.

    A question that is asked for the first time, or not since many arrivals, has only sums, from the index of
    pods; it may never be asked again. `version` is the last one of the live snapshot that was counted.
    """

    def __init__(self, topology_key: str) -> None:
        self.version = -1
        self._key = topology_key
        self._column: FactColumn
        self._sums: Sums
        # The end of the arrivals that were counted.
        self._position = -1
        self._has_rows = False
        self._answers = PodAnswers(MAX_POD_KEYS)
        self._clear(0)

    @property
    def nbytes(self) -> int:
        """Return the approximate size."""
        if self.version < 0:
            return 0
        return self._sums.nbytes + _PER_ROW * len(self.amounts) + _PER_POD_KEY * len(self._answers)

    def _clear(self, rows: int) -> None:
        self.amounts: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self.domains: NDArray[np.int32] = np.full(rows, NO_DOMAIN, dtype=np.int32)
        self._steps: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        # An upper bound of all amounts. Up to `_most`, any sum of them is in range. Other sums are not read,
        # and numpy may wrap.
        self._largest = 0
        self._most = INT_MAX
        self._errors: dict[int, str] = {}
        # Whether the sums have to be rebuilt. They are not updated then.
        self._is_stale = True

    def sums(
        self,
        snapshot: Snapshot,
        arrivals: Arrivals,
        pods: PodIndex,
        measure: Measure,
        needs_rows: bool = False,
    ) -> Sums:
        """Return the sums over a snapshot, live or an overlay; EvalError if a node could not be counted.

        The sums of the live snapshot are valid until the next call. With `needs_rows`, the amounts are, too.

        INVARIANT: all measures that a tally is given count the same. They come with the attempts.
        """
        live = snapshot.live
        needs_rows = needs_rows or snapshot.is_overlay
        if self.version != live.version or (needs_rows and not self._has_rows):
            self._refresh(live, arrivals, pods, measure, needs_rows)
            self.version = live.version
        if snapshot.is_overlay:
            return self._corrected(snapshot, measure)
        if self._errors or self._largest > self._most:
            self._raise_first_error(self._errors, snapshot)
        return self._sums

    def amounts_of(
        self, row: int, pods: Sequence[PodInfo], are_more: bool, measure: Measure, is_sum: bool
    ) -> Sequence[int]:
        """Return the amount of each of some pods, of a sum or a number of pods; nothing if all are 0. The
        pods are on a row, or come in addition. EvalError if one is unknown or very large.
        """
        if self.domains.item(row) == NO_DOMAIN or not (is_sum or are_more or self.amounts.item(row)):
            return ()
        counts = measure.counts_of(pods, self._answers)
        if counts is None:
            raise EvalError("a pod could not be counted")
        if are_more and self._steps.item(row) + sum([steps for _, steps in counts]) > measure.question.limit:
            raise EvalError("the node has too many pods for the steps")
        amounts = [amount for amount, _ in counts]
        if is_sum and max(map(abs, amounts), default=0) > MAX_SUMMED:
            raise EvalError("integer overflow")
        return amounts

    def has_room_for(self, removed: NDArray[np.int64]) -> bool:
        """Return whether any sum is in range, too, after these amounts are removed from rows."""
        return self._largest + _largest_of(removed) <= self._most

    def _refresh(
        self, live: LiveSnapshot, arrivals: Arrivals, pods: PodIndex, measure: Measure, needs_rows: bool
    ) -> None:
        arrived, missed = arrivals.since(self._position), arrivals.position - self._position
        if arrived == [] and (self._has_rows or not needs_rows):
            return
        is_first = self._position < 0 or (missed > _FEW_ARRIVALS and self._is_behind(missed, pods, measure))
        self._position = arrivals.position
        if is_first and not needs_rows:
            first = counts_of_selected(live, pods, measure, PodAnswers(MAX_POD_KEYS))
            if first is not None:
                if self._has_rows:
                    self._clear(0)
                self._sums, self._has_rows = first.sums(), False
                return
        if arrived is None or is_first or not self._has_rows:
            self._begin(live, pods, measure)
            self._has_rows = True
        else:
            self._follow(live, arrived, measure)
        if self._is_stale:
            self._rebuild()

    def _is_behind(self, missed: int, pods: PodIndex, measure: Measure) -> bool:
        """Return whether following so many arrivals costs more than counting from the index of pods."""
        if not measure.on_facts:
            return False
        asked = measure.pods_asked(pods)
        return asked is not None and missed > _FEW_ARRIVALS + asked

    def _begin(self, live: LiveSnapshot, pods: PodIndex, measure: Measure) -> None:
        self._column = domains_of(live, self._key)
        self._clear(len(live.names))
        self._sums = Sums(self._column)
        self._limit(live)
        first = counts_of_selected(live, pods, measure, self._answers)
        if first is None:
            self._count_all(live, measure)
            return
        self.domains, (self.amounts, self._steps) = first.domains, first.by_row(live)
        self._largest = _largest_of(self.amounts)

    def _count_all(self, live: LiveSnapshot, measure: Measure) -> None:
        """Count the pods of all nodes that take part."""
        codes, order = self._column.codes, live.order
        asked = NodeSet(live, order[codes.take(order) != NO_DOMAIN])
        found = measure.participants(asked)
        if found is None or not measure.on_facts:
            self._count(live, asked.rows.tolist(), measure)
            return
        rows, steps = found[0].rows, found[1]
        self.domains[rows] = codes.take(rows)
        self._steps[asked.rows] = steps
        # Most nodes have nothing to count.
        rows = rows[live.pod_counts.take(rows) > 0]
        counts = [measure.count_added(live.info(row).pods, steps, self._answers) for row in rows.tolist()]
        self._steps[rows] = [0 if each is None else each[1] for each in counts]
        self.amounts[rows] = [0 if each is None else each[0] for each in counts]
        self._largest = _largest_of(self.amounts)
        # Those with an error are counted by themselves.
        failed = [each is None for each in counts]
        self._count(live, rows[failed].tolist(), measure)

    def _follow(self, live: LiveSnapshot, arrived: Sequence[Arrival], measure: Measure) -> None:
        """Count the arrivals at rows; for some rows, all their pods."""
        if len(arrived) * _REBUILD > len(self.amounts) or self._largest > self._most:
            self._is_stale = True
        # In order, each once. Counting a whole row includes later arrivals.
        again: dict[int, None] = {}
        domains, taken, answers = self.domains, self._steps, self._answers
        can_add, count_added = measure.on_facts, measure.count_added
        for row, pods in arrived:
            if pods is None or row in again or row in self._errors or not can_add:
                again[row] = None
            elif (domain := domains.item(row)) != NO_DOMAIN:
                before = taken.item(row)
                found = count_added(pods, before, answers)
                if found is None or (found[0] and not self._add(row, domain, found[0])):
                    again[row] = None
                elif found[1] != before:
                    taken[row] = found[1]
                    self._sums.steps += found[1] - before
        if again:
            self._grow(live)
            self._count(live, again, measure)

    def _grow(self, live: LiveSnapshot) -> None:
        self._column = column = domains_of(live, self._key)
        missing = len(live.names) - len(self.amounts)
        self._limit(live)
        if missing > 0:
            self.amounts = np.pad(self.amounts, (0, missing))
            self.domains = np.pad(self.domains, (0, missing), constant_values=NO_DOMAIN)
            self._steps = np.pad(self._steps, (0, missing))
        if column.numbers is self._sums.numbers:
            self._sums.refresh(column)
        else:
            self._is_stale = True

    def _limit(self, live: LiveSnapshot) -> None:
        # Rows of removed nodes have 0.
        self._most = INT_MAX // max(len(live.order), 1)

    def _count(self, live: LiveSnapshot, rows: Iterable[int], measure: Measure) -> None:
        for row in rows:
            has_node = bool(live.names[row])
            self._put(row, measure.count_node(live.info(row), self._answers) if has_node else NOT_COUNTED)

    def _add(self, row: int, domain: int, more: int) -> bool:
        """Add to the amount of a row that takes part. Return whether the result is in range."""
        amount = self.amounts.item(row) + more
        if not -self._largest <= amount <= self._largest:
            if not INT_MIN <= amount <= INT_MAX:
                return False
            self._extend_bound(amount)
        self.amounts[row] = amount
        if not self._is_stale:
            self._sums.add(domain, more)
        return True

    def _extend_bound(self, amount: int) -> None:
        if abs(amount) > self._largest:
            self._largest = abs(amount)
            if self._largest > self._most:
                self._is_stale = True

    def _put(self, row: int, counted: NodeCount) -> None:
        """Replace the count of a whole row."""
        takes_part, amount, steps, error = counted
        before, was, took = self.domains.item(row), self.amounts.item(row), self._steps.item(row)
        domain = self._column.codes.item(row) if takes_part else NO_DOMAIN
        self._extend_bound(amount)
        if not self._is_stale and (before, was) != (domain, amount):
            if before != NO_DOMAIN:
                self._sums.add(before, -was, -1)
            if domain != NO_DOMAIN:
                self._sums.add(domain, amount, 1)
        self._sums.steps += steps - took
        self.amounts[row], self.domains[row], self._steps[row] = amount, domain, steps
        self._errors.pop(row, None)
        if error:
            self._errors[row] = error

    def _rebuild(self) -> None:
        # The column may have renumbered the domains of rows that take part.
        self.domains = np.where(self.domains == NO_DOMAIN, NO_DOMAIN, self._column.codes)
        self._sums = Sums.of_nodes(self._column, self.domains)
        rows = ((self.amounts != 0) & (self.domains != NO_DOMAIN)).nonzero()[0]
        self._sums.add_rows(self.domains.take(rows), self.amounts.take(rows))
        self._sums.steps = int(self._steps.sum())
        self._is_stale = False

    def _corrected(self, overlay: Snapshot, measure: Measure) -> Sums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        rows = sorted(overlay.changed_rows)
        found = {row: measure.count_node(overlay.info(row), self._answers) for row in rows}
        errors = {row: error for row, error in self._errors.items() if row not in found}
        errors |= {row: counted.error for row, counted in found.items() if counted.error}
        self._raise_first_error(errors, overlay, *(abs(counted.amount) for counted in found.values()))
        sums = self._sums.of_overlay()
        for row, counted in found.items():
            before = int(self.domains[row])
            if before != NO_DOMAIN:
                sums.add(before, -int(self.amounts[row]), -1)
            if counted.takes_part:
                domain = overlay.info(row).labels[self._key]
                sums.add(sums.number_of(domain), counted.amount, 1)
            sums.steps += counted.steps - int(self._steps[row])
        return sums

    def _raise_first_error(self, errors: Mapping[int, str], snapshot: Snapshot, *others: int) -> None:
        """Raise the first error of a node, in visiting order, or an overflow if the sums are too large, given
        the `others` among the amounts.
        """
        if errors:
            raise EvalError(next(errors[row] for row in snapshot.order.tolist() if row in errors))
        if self._largest > self._most:
            # The largest amount may be gone.
            self._largest = _largest_of(self.amounts)
        if max(self._largest, *others, 0) > self._most:
            # With amounts that large, any sum may be out of range.
            raise EvalError("integer overflow")


def _largest_of(amounts: NDArray[np.int64]) -> int:
    """Return the largest absolute amount. That of the least int64 is out of the range of numpy's `abs`."""
    return max(int(amounts.max(initial=0)), -int(amounts.min(initial=0)))

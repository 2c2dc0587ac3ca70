"""Counts over what-ifs at once: in each of them, one node lacks some of its pods, or has further ones.

In a node's own what-if, the number of its domain is that of the live snapshot without the removed pods, and
with the further ones, whose amounts are removed as negative ones. So `here` is known for all nodes together.
Numbers that are not about a node are those of one what-if, which hold for all what-ifs with the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.columns import Int64Column
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import AmountsOf, Rows, Snapshot, WhatIfNodes
from kdsl.eval.scalar.aggregate import Question
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.plan.counts.store import TallyKey, TallyStore
from kdsl.plan.counts.sums import Sums
from kdsl.plan.counts.topology import (
    SHARED_STEPS,
    HereColumn,
    PodTermCount,
    PodTerms,
    Topology,
    TopologyCount,
)


class NotTogether(Exception):  # noqa: N818 - no error: the what-ifs are judged one by one
    """A rule asks for something that is not known for many what-ifs at once."""


class WhatIfCounts:
    """The counts that a rule asks for while it judges `nodes`, each in its own what-if."""

    def __init__(self, nodes: NodeSet, what_ifs: WhatIfNodes) -> None:
        self._rows = nodes.rows
        self._what_ifs = what_ifs
        self._shared: list[Int64Column] = []

    @property
    def live(self) -> Snapshot:
        """The snapshot in which no pod is removed."""
        if self._what_ifs.base.is_overlay:
            raise NotTogether
        return self._what_ifs.base

    @property
    def have_more(self) -> bool:
        """Return whether nodes have further pods."""
        return self._what_ifs.has_more

    def removed(self, key: TallyKey, amounts_of: AmountsOf) -> Int64Column:
        """Return the amounts of the pods that nodes lack, less those of their further pods, by row."""
        found = np.zeros(len(self.live.names), np.int64)
        found[self._what_ifs.rows] = self._what_ifs.removed(key, amounts_of)
        return found

    def shared(self, numbers: Callable[[Rows], Int64Column]) -> int:
        """Return the number of the first node's what-if; `numbers` returns those of rows."""
        found = numbers(self._rows)
        self._shared.append(found)
        return found.item(0)

    def groups(self) -> list[NDArray[np.intp]]:
        """Return the places of the nodes, in groups with equal shared numbers; the first node is in the first
        group.
        """
        groups = np.zeros(len(self._rows), np.intp)
        for numbers in self._shared:
            if np.count_nonzero(numbers != numbers[0]):
                codes = np.unique(numbers, return_inverse=True)[1]
                # Renumbering keeps the products small.
                groups = np.unique(groups * len(codes) + codes, return_inverse=True)[1]
        found = [(groups == each).nonzero()[0] for each in range(int(groups.max()) + 1)]
        return sorted(found, key=lambda places: places.item(0))


class WhatIfTopology(Topology, frozen=True, eq=False, kw_only=True):
    """A topology whose nodes lack pods, each in its own what-if; `snapshot` is the live one."""

    what_ifs: WhatIfCounts

    def count(self, question: Question, meter: Meter) -> Value:
        return self._asked(question, meter, is_sum=False)

    def sum(self, question: Question, meter: Meter) -> Value:
        return self._asked(question, meter, is_sum=True)

    def _asked(self, question: Question, meter: Meter, is_sum: bool) -> Value:
        key, measure = self.asked(question)
        if key is None or not measure.on_facts:
            raise NotTogether
        try:
            # First of all: the sums of a tally without rows would be counted again.
            tally = TallyStore.of(self.snapshot).tally(key, measure)
            count = super().count(question, meter)
            amounts_of = partial(tally.amounts_of, measure=measure, is_sum=is_sum)
            removed = self.what_ifs.removed(key, amounts_of)
            if self.what_ifs.have_more:
                # Counting further pods takes further steps, at most those of a node.
                meter.spend(measure.question.limit // SHARED_STEPS + 1)
        except EvalError as error:
            # It may be counted without the pods of one node.
            raise NotTogether from error
        if not np.count_nonzero(removed):
            return count
        if not tally.has_room_for(removed):
            raise NotTogether
        return _WhatIfTopologyCount(count, removed, self.what_ifs, count.sums, tally.domains)


class WhatIfTerms(PodTerms, frozen=True, eq=False, kw_only=True):
    """The affinity terms of pods that nodes lack, each in its own what-if; `snapshot` is the live one."""

    what_ifs: WhatIfCounts

    @property
    def empty_count(self) -> PodTermCount | None:
        """None if nodes have further pods, which may have terms."""
        return None if self.what_ifs.have_more else super().empty_count

    def count(self, question: Question, meter: Meter) -> Value:
        try:
            count = super().count(question, meter)
        except EvalError as error:
            raise NotTogether from error
        key = count.key
        if key is None:
            raise NotTogether
        index, tally = self.store.term_tally(self.kind, key, question)
        if not tally.has_room_for(index):
            raise NotTogether

        # Counting the terms of further pods takes further steps.
        more_steps = question.limit // SHARED_STEPS

        def amounts_of(row: int, pods: Sequence[PodInfo], are_more: bool) -> Sequence[int]:
            node = self.snapshot.info(row)
            if not are_more:
                return tally.amounts_of(index, node, pods) if index.placed_on(row) else ()
            counts = tally.counts_of_more(index, node, pods, question)
            if sum([each.steps for each in counts]) > more_steps or not tally.has_room_for(index, counts):
                raise NotTogether
            return [each.amount for each in counts]

        try:
            removed = self.what_ifs.removed(key, amounts_of)
            if self.what_ifs.have_more:
                meter.spend(more_steps)
        except EvalError as error:
            raise NotTogether from error
        return _WhatIfCount(count, removed, self.what_ifs) if np.count_nonzero(removed) else count

    sum = count


class _WhatIfCount(Struct, frozen=True, eq=False):
    """A count of the live snapshot, and the amounts that its nodes lack, by row."""

    count: TopologyCount | PodTermCount
    removed: Int64Column
    what_ifs: WhatIfCounts
    label_keys = None
    """Nodes with equal labels may lack different pods."""

    def renewed(self, meter: Meter) -> _WhatIfCount:
        """Return this count, and take the steps of counting again."""
        self.count.renewed(meter)
        return self

    def is_current(self) -> bool:
        """Return True: the count does not outlive one question about the what-ifs."""
        return True

    def here(self, node: NodeInfo) -> int:
        row = self.what_ifs.live.row_of(node.name)
        return self.count.here(node) - (0 if row is None else self.removed.item(row))

    @property
    def here_column(self) -> HereColumn:
        """Returns `here` for many rows at once."""
        column = self.count.here_column
        assert column is not None
        return lambda rows: column(rows) - self.removed.take(rows)

    @property
    def here_range(self) -> tuple[int, int]:
        """Bounds of every `here`."""
        least, largest = self.count.here_range
        return least - int(self.removed.max()), largest - int(self.removed.min())

    def total(self) -> int:
        total = self.count.total()
        return self.what_ifs.shared(lambda rows: total - self.removed.take(rows))


class _WhatIfTopologyCount(_WhatIfCount, frozen=True, eq=False):
    """Such a count for a topology, with its sums. `numbers` are the domains of nodes that take part, by row:
    removed pods change none of them.
    """

    sums: Sums
    numbers: NDArray[np.int32]

    def least(self, min_domains: int) -> int:
        if self.sums.domains < min_domains:
            return 0
        leasts, numbers, removed = self.sums.leasts, self.numbers, self.removed
        return self.what_ifs.shared(lambda rows: leasts(numbers.take(rows), removed.take(rows)))

    def domains(self) -> int:
        return self.sums.domains

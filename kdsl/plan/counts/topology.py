"""The views `Topology`, `TopologyCount`, `PodTerms` and `PodTermCount`: counting as rules write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.eval.values import EvalError
from kdsl.plan.counts.kept import Handle, Name
from kdsl.plan.counts.measures import Measure, Meter, Question, total
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.sums import Sums
from kdsl.plan.counts.tally import Tally
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.worths import Appraisal, TermSums, TermTally, Worth

NO_DOMAINS: Final = 2147483647
"""The least count where there is no domain at all: kube-scheduler's MaxInt32."""
FEW_DOMAINS: Final = 8
"""Of so few domains each is looked at, rather than what is counted in them."""
_SHARED_STEPS: Final = 16
"""So many steps of counting cost the rule that asks one: counting is shared."""


HereColumn: TypeAlias = Callable[[Rows], NDArray[np.int64] | int]
"""Returns a number for each row, or the one that all rows have."""


@dataclass(frozen=True, eq=False)
class Topology:
    """The nodes that have the label `key`, by its values. `eligible` are asked of each node."""

    snapshot: Snapshot
    key: str
    filters: tuple[Question, ...] = ()
    nothing = None

    def eligible(self, question: Question, meter: Meter) -> Topology:
        return replace(self, filters=(*self.filters, question))

    def count(self, question: Question, meter: Meter) -> TopologyCount:
        return self._summed(question, meter)

    def sum(self, question: Question, meter: Meter) -> TopologyCount:
        return self._summed(question, meter)

    def _summed(self, question: Question, meter: Meter) -> TopologyCount:
        names = (*[each.name for each in self.filters], question.name)
        handle = Handle[Tally](None if None in names else Name((self.key, names)))
        measure = Measure(self.key, self.filters, question)
        counting = _Counting(self.snapshot, TallyStore.of(self.snapshot), handle, measure)
        return TopologyCount(self.key, counting.sums(meter), counting)


@dataclass(frozen=True, slots=True, eq=False)
class _Counting:
    """Counts again and again."""

    snapshot: Snapshot
    store: TallyStore
    handle: Handle[Tally]
    measure: Measure

    def sums(self, meter: Meter) -> Sums:
        sums = self.store.sums(self.snapshot, self.handle, self.measure)
        # The same, whether it was counted now or before.
        meter.spend(len(self.snapshot) + sums.steps // _SHARED_STEPS)
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class TopologyCount:
    """Numbers by domain of one topology key."""

    key: str
    sums: Sums
    counting: _Counting

    def renewed(self, meter: Meter) -> TopologyCount:
        """Return the count as it is now."""
        sums = self.counting.sums(meter)
        return self if sums is self.sums else TopologyCount(self.key, sums, self.counting)

    def here(self, node: NodeInfo) -> int:
        domain = node.labels.get(self.key)
        return 0 if domain is None else self.sums.of(domain)

    @property
    def here_column(self) -> HereColumn | None:
        """What gives `here` for many rows at once; None over an overlay."""
        return None if self.sums.ids is None else self.sums.at

    @property
    def here_range(self) -> tuple[int, int]:
        """Two numbers that no `here` is beyond."""
        return self.sums.range

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The label that tells `here`, where it has few values; else None."""
        return frozenset((self.key,)) if self.sums.named <= FEW_DOMAINS else None

    def least(self, min_domains: int) -> int:
        least = self.sums.least
        if least is None:
            return NO_DOMAINS
        return 0 if self.sums.domains < min_domains else least

    def total(self) -> int:
        return self.sums.total

    def domains(self) -> int:
        return self.sums.domains


@dataclass(frozen=True, eq=False)
class PodTerms:
    """The affinity terms of one kind that the pods of a snapshot have. `watch` is shown what is counted."""

    snapshot: Snapshot
    kind: TermKind
    watch: Callable[[PodTermCount], None] | None = None

    @cached_property
    def store(self) -> TallyStore:
        return TallyStore.of(self.snapshot)

    @property
    def nothing(self) -> PodTermCount | None:
        """What any question comes to where no pod has such terms; else None."""
        return None if self.are_there() else PodTermCount(_NO_SUMS, self)

    def are_there(self) -> bool:
        """Tell whether a pod has such terms."""
        return self.store.has_terms(self.snapshot, self.kind)

    def count(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def sum(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def _summed(self, question: Question, meter: Meter) -> PodTermCount:
        appraise = _Appraise(question)
        handle = Handle[TermTally](None if question.name is None else Name((self.kind, question.name)))
        asking = _Asking(self, handle, appraise)
        count = PodTermCount(asking.sums(meter), self, asking)
        if self.watch is not None:
            self.watch(count)
        return count


@dataclass(frozen=True, slots=True, eq=False)
class _Appraise:
    """Asks a question about one term."""

    question: Question

    @property
    def selecting(self) -> PodInfo | None:
        pod = self.question.selecting
        return pod if isinstance(pod, PodInfo) else None

    def __call__(self, term: PodAffinityTerm, /) -> Worth:
        # Each term has steps of its own, as each node has.
        own = self.question.meter()
        try:
            amount = total(self.question.answers((term,), own))
        except EvalError as error:
            return Worth(0, min(own.limit, own.limit - own.left), error.message)
        return Worth(amount, own.limit - own.left)


@dataclass(frozen=True, slots=True, eq=False)
class _Asking:
    """Asks terms again and again."""

    terms: PodTerms
    handle: Handle[TermTally]
    appraise: Appraisal

    def counted(self) -> TermSums:
        terms = self.terms
        return terms.store.term_sums(terms.snapshot, terms.kind, self.handle, self.appraise)

    def sums(self, meter: Meter) -> TermSums:
        sums = self.counted()
        # The same, whether they were asked now or before.
        meter.spend(sums.steps)
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class PodTermCount:
    """Numbers by domain, of several topology keys. They are small enough for any sum of them to be an int."""

    sums: TermSums
    terms: PodTerms
    asking: _Asking | None = None
    """None where there was nothing to ask."""

    def renewed(self, meter: Meter) -> PodTermCount | None:
        """Return the count as it is now; None where it has to be asked for the first time."""
        if not self.terms.are_there():
            return self if self.asking is None else PodTermCount(_NO_SUMS, self.terms)
        if self.asking is None:
            return None
        sums = self.asking.sums(meter)
        return self if sums is self.sums else PodTermCount(sums, self.terms, self.asking)

    def is_still(self, mark: object) -> bool:
        """Tell whether the sums are those that had the mark."""
        if self.asking is None:
            return False
        try:
            return self.asking.counted().mark is mark
        except EvalError:
            return False

    def here(self, node: NodeInfo) -> int:
        by_key = self.sums.by_key
        if not by_key:
            return 0
        labels = node.labels
        return sum([amounts.of(labels[key]) for key, amounts in by_key.items() if key in labels])

    @property
    def here_column(self) -> HereColumn | None:
        """What gives `here` for many rows at once; None over an overlay."""
        tables = tuple(self.sums.by_key.values())
        if any(amounts.ids is None for amounts in tables):
            return None
        if len(tables) == 1:
            return tables[0].at
        return lambda rows: sum([amounts.at(rows) for amounts in tables])

    @property
    def here_range(self) -> tuple[int, int]:
        """Two numbers that no `here` is beyond."""
        ranges = [amounts.range for amounts in self.sums.by_key.values()]
        return sum([least for least, _ in ranges]), sum([largest for _, largest in ranges])

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The labels that tell `here`, where they have few values; else None."""
        tables = self.sums.by_key
        are_few = all(amounts.named <= FEW_DOMAINS for amounts in tables.values())
        return frozenset(tables) if are_few else None

    def total(self) -> int:
        return self.sums.total


_NO_SUMS: Final = TermSums({}, 0, 0, object())

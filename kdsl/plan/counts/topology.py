"""The views `Topology`, `TopologyCount`, `PodTerms` and `PodTermCount`: counting as rules write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.eval.scalar.aggregate import Question
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError
from kdsl.plan.counts.measures import Measure
from kdsl.plan.counts.store import TallyKey, TallyStore
from kdsl.plan.counts.sums import NO_DOMAIN, DomainSums, Sums
from kdsl.plan.counts.term_tally import TermSums
from kdsl.plan.counts.terms import TermKind

NO_DOMAINS: Final = 2147483647
"""The least count without any domain: kube-scheduler's MaxInt32."""
FEW_DOMAINS: Final = 8
"""The most domains that are compared one by one, by label instead of by count."""
SHARED_STEPS: Final = 16
"""The steps of counting that cost the asking rule one step: counts are shared."""

HereColumn: TypeAlias = Callable[[Rows], NDArray[np.int64] | int]
"""Returns a number for each row, or the number that all rows share."""


S = TypeVar("S", Sums, TermSums)


class Topology(Struct, frozen=True, eq=False):
    """The nodes that have the label `key`, by its values. `filters` hold for the nodes that take part.

    `empty_count` is None: unlike that of `PodTerms`, a count is never known before it is made.
    """

    snapshot: Snapshot
    key: str
    filters: tuple[Question, ...] = ()
    empty_count = None

    def eligible(self, question: Question, meter: Meter) -> Topology:
        return replace(self, filters=(*self.filters, question))

    def count(self, question: Question, meter: Meter) -> TopologyCount:
        key, measure = self.asked(question)
        store = TallyStore.of(self.snapshot)
        sums = store.sums(self.snapshot, key, measure)
        _pay(sums, self.snapshot, meter)
        return TopologyCount({self.key: sums}, sums, self.snapshot, store, key, measure)

    sum = count

    def asked(self, question: Question) -> tuple[TallyKey | None, Measure]:
        """Return a question about pods with its filters, and the key of its tally, if it is stored."""
        keys = (*[each.key for each in self.filters], question.key)
        key = None if None in keys else TallyKey((self.key, keys))
        return key, Measure(self.key, self.filters, question)


def _pay(sums: Sums, snapshot: Snapshot, meter: Meter) -> None:
    """Take the steps of a count, the same whether it was counted now or before."""
    meter.spend(len(snapshot.order) + sums.steps // SHARED_STEPS)


class PodTerms(Struct, frozen=True, eq=False):
    """The affinity terms of one kind of all placed pods. `on_count` receives each count."""

    snapshot: Snapshot
    kind: TermKind
    store: TallyStore
    on_count: Callable[[PodTermCount], None] | None = None

    @property
    def empty_count(self) -> PodTermCount | None:
        """The count for any question if no pod has such terms; else None."""
        return None if self.store.has_terms(self.snapshot, self.kind) else PodTermCount({}, _NO_SUMS, self)

    def count(self, question: Question, meter: Meter) -> PodTermCount:
        key = None if question.key is None else TallyKey((self.kind, question.key))
        sums = self.store.term_sums(self.snapshot, self.kind, key, question)
        # The cost does not depend on whether the terms were asked before.
        meter.spend(sums.steps)
        count = PodTermCount(sums.by_key, sums, self, key, question)
        if self.on_count is not None:
            self.on_count(count)
        return count

    sum = count


class _Count(Struct, Generic[S], frozen=True, eq=False):
    """Numbers by domain, of one or several topology keys. Any sum of them fits an int."""

    by_key: Mapping[str, DomainSums]
    sums: S

    def here(self, node: NodeInfo) -> int:
        by_key = self.by_key
        # Most counts of terms are empty.
        if not by_key:
            return 0
        labels, total = node.facts.labels.entries, 0
        for key, amounts in by_key.items():
            domain = labels.get(key)
            if domain is not None:
                total += amounts.cells.item(amounts.numbers.get(domain, NO_DOMAIN))
        return total

    @property
    def here_column(self) -> HereColumn | None:
        """Returns `here` for many rows at once; None over an overlay."""
        tables = [*self.by_key.values()]
        for amounts in tables:
            if amounts.ids is None:
                return None
        if len(tables) == 1:
            return tables[0].at
        return lambda rows: sum([amounts.at(rows) for amounts in tables])

    @property
    def here_range(self) -> tuple[int, int]:
        """Bounds of every `here`."""
        least = largest = 0
        for amounts in self.by_key.values():
            least += amounts.least_ever
            largest += amounts.largest_ever
        return least, largest

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The labels that determine `here` if they have few values; else None."""
        for amounts in self.by_key.values():
            if amounts.named_domains > FEW_DOMAINS:
                return None
        return frozenset(self.by_key)

    def total(self) -> int:
        return self.sums.total


class TopologyCount(_Count[Sums], frozen=True, eq=False):
    """The pods of the nodes of each domain."""

    snapshot: Snapshot
    store: TallyStore
    key: TallyKey | None
    measure: Measure

    def renewed(self, meter: Meter) -> TopologyCount:
        """Return the count as it is now."""
        sums = self.store.sums(self.snapshot, self.key, self.measure)
        _pay(sums, self.snapshot, meter)
        if sums is self.sums:
            return self
        return replace(self, by_key=dict.fromkeys(self.by_key, sums), sums=sums)

    def is_current(self) -> bool:
        """Return whether these are the sums of the current cluster."""
        try:
            return self.store.sums(self.snapshot, self.key, self.measure) is self.sums
        except EvalError:
            return False

    def least(self, min_domains: int) -> int:
        sums = self.sums
        least = sums.least
        if least is None:
            return NO_DOMAINS
        return 0 if min_domains > 1 and sums.domains < min_domains else least

    def domains(self) -> int:
        return self.sums.domains


class PodTermCount(_Count[TermSums], frozen=True, eq=False):
    """The terms of pods that run in each domain. `question` is None if there was nothing to count."""

    terms: PodTerms
    key: TallyKey | None = None
    question: Question | None = None

    def renewed(self, meter: Meter) -> PodTermCount | None:
        """Return the current count; None if it has to be asked for the first time."""
        terms, question = self.terms, self.question
        if not terms.store.has_terms(terms.snapshot, terms.kind):
            return self if question is None else PodTermCount({}, _NO_SUMS, terms)
        if question is None:
            return None
        sums = terms.store.term_sums(terms.snapshot, terms.kind, self.key, question)
        meter.spend(sums.steps)
        return self if sums is self.sums else replace(self, by_key=sums.by_key, sums=sums)

    def is_current(self) -> bool:
        """Return whether these are the sums of the current cluster, by the same topology keys."""
        return self.terms.empty_count is not None if self.question is None else self._counted() is self.sums

    def has_mark(self, mark: object) -> bool:
        """Return whether the sums still have this mark."""
        sums = self._counted()
        return sums is not None and sums.mark is mark

    def _counted(self) -> TermSums | None:
        """Return the current sums; None if a term cannot be counted, or if there was no question."""
        terms, question = self.terms, self.question
        if question is None:
            return None
        try:
            return terms.store.term_sums(terms.snapshot, terms.kind, self.key, question)
        except EvalError:
            return None


_NO_SUMS: Final = TermSums({}, 0, 0, object())

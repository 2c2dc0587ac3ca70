"""The views `Topology`, `TopologyCount`, `PodTerms` and `PodTermCount`: counting as rules write it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.node import NodeInfo
from kdsl.cluster.snapshot import Rows, Snapshot
from kdsl.plan.tallies.domains import NO_DOMAIN
from kdsl.plan.tallies.store import TallyStore
from kdsl.plan.tallies.tally import NOT_COUNTED, Counted, Sums
from kdsl.plan.tallies.terms import Domain, TermKind
from kdsl.plan.values import INT_MAX, INT_MIN, EvalError, Value

NO_DOMAINS: Final = 2147483647
"""The least count where there is no domain at all: kube-scheduler's MaxInt32."""
_SHARED_STEPS: Final = 16
"""So many steps of counting cost the rule that asks one: counting is shared."""


class Meter(Protocol):
    """What counting may cost, and has cost: `kdsl.plan.scalar.meter.Meter`."""

    left: int
    limit: int

    def spend(self, steps: int) -> None:
        """Take steps before they are done; EvalError where that is too much."""
        ...


class Question(Protocol):
    """The body of a macro, with everything it reads beside its variable.

    `name` is equal for questions that have equal answers, None where that is not known.
    """

    @property
    def name(self) -> Hashable | None: ...

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        """Answer for each value; EvalError. What it costs is taken from `meter`."""
        ...

    def meter(self) -> Meter:
        """Return a full meter, for asking about one node."""
        ...


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
        names = (*(each.name for each in self.filters), question.name)
        what = None if None in names else names
        store = TallyStore.of(self.snapshot)
        sums = store.sums(self.snapshot, self.key, what, lambda node: self._counted(node, question))
        # The same, whether it was counted now or before.
        meter.spend(len(self.snapshot) + sums.steps // _SHARED_STEPS)
        return TopologyCount(self.key, sums)

    def _counted(self, node: NodeInfo, question: Question) -> Counted:
        if self.key not in node.labels:
            return NOT_COUNTED
        # Each node has steps of its own: the others must make no difference to whether it can be counted.
        meter = question.meter()
        try:
            takes_part = all(all(each.answers((node,), meter)) for each in self.filters)
            amount = _total(question.answers(node.pods, meter)) if takes_part else 0
        except EvalError as error:
            return Counted(True, 0, min(meter.limit, meter.limit - meter.left), error.message)
        return Counted(takes_part, amount, meter.limit - meter.left)


@dataclass(frozen=True, eq=False)
class TopologyCount:
    """Numbers by domain of one topology key."""

    key: str
    sums: Sums

    def here(self, node: NodeInfo) -> int:
        domain = node.labels.get(self.key)
        return 0 if domain is None else self.sums.of(domain)

    @property
    def here_column(self) -> Callable[[Rows], NDArray[np.int64]] | None:
        """What gives `here` for many rows at once; None over an overlay."""
        ids, amounts = self.sums.ids, self.sums.amounts
        if ids is None:
            return None

        def column(rows: Rows) -> NDArray[np.int64]:
            domains = ids.take(rows)
            if not len(amounts):
                return np.zeros(len(rows), dtype=np.int64)
            return np.where(domains == NO_DOMAIN, 0, amounts[domains])

        return column

    def least(self, min_domains: int) -> int:
        present = self.sums.present()
        if not len(present):
            return NO_DOMAINS
        return 0 if len(present) < min_domains else int(present.min())

    def total(self) -> int:
        return int(self.sums.present().sum())

    def domains(self) -> int:
        return len(self.sums.present())


@dataclass(frozen=True, eq=False)
class PodTerms:
    """The affinity terms of one kind that the pods of a snapshot have."""

    snapshot: Snapshot
    kind: TermKind

    @property
    def nothing(self) -> PodTermCount | None:
        """What any question comes to where no pod has such terms; else None."""
        has_terms = TallyStore.of(self.snapshot).has_terms(self.snapshot, self.kind)
        return None if has_terms else _NO_TERMS

    def count(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def sum(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def _summed(self, question: Question, meter: Meter) -> PodTermCount:
        def value(term: Value) -> int:
            return _total(question.answers((term,), meter))

        return PodTermCount.of(TallyStore.of(self.snapshot).term_sums(self.snapshot, self.kind, value))


@dataclass(frozen=True, eq=False)
class PodTermCount:
    """Numbers by domain, of several topology keys."""

    by_key: Mapping[str, Mapping[str, int]]

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of a node that decide what `here` is."""
        return frozenset(self.by_key)

    @staticmethod
    def of(sums: Mapping[Domain, int]) -> PodTermCount:
        by_key: dict[str, dict[str, int]] = {}
        for (key, domain), amount in sums.items():
            if amount:
                by_key.setdefault(key, {})[domain] = _checked(amount)
        return PodTermCount(by_key)

    def here(self, node: NodeInfo) -> int:
        labels = node.labels
        amounts = (sums.get(labels.get(key, ""), 0) for key, sums in self.by_key.items() if key in labels)
        return _checked(sum(amounts))

    def total(self) -> int:
        return _checked(sum(amount for sums in self.by_key.values() for amount in sums.values()))


_NO_TERMS: Final = PodTermCount({})


def _total(answers: Iterable[Value]) -> int:
    """Add up numbers; of conditions, those that hold."""
    return _checked(sum(map(int, answers)))


def _checked(amount: int) -> int:
    if INT_MIN <= amount <= INT_MAX:
        return amount
    raise EvalError("integer overflow")

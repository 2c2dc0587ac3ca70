"""The views `Topology`, `TopologyCount`, `PodTerms` and `PodTermCount`: counting as rules write it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.node import NodeInfo
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import Rows, Snapshot
from kdsl.plan.tallies.seen import Pods
from kdsl.plan.tallies.store import Name, TallyStore
from kdsl.plan.tallies.sums import Sums
from kdsl.plan.tallies.tally import NOT_COUNTED, Counted, Measure
from kdsl.plan.tallies.terms import TermKind
from kdsl.plan.tallies.worths import Appraisal, TermSums, Worth
from kdsl.plan.values import INT_MAX, INT_MIN, EvalError, Value

NO_DOMAINS: Final = 2147483647
"""The least count where there is no domain at all: kube-scheduler's MaxInt32."""
FEW_DOMAINS: Final = 8
"""Of so few domains each is looked at, rather than what is counted in them."""
_SHARED_STEPS: Final = 16
"""So many steps of counting cost the rule that asks one: counting is shared."""


HereColumn: TypeAlias = Callable[[Rows], NDArray[np.int64] | int]
"""Returns a number for each row, or the one that all rows have."""


class Meter(Protocol):
    """What counting may cost, and has cost: `kdsl.plan.scalar.meter.Meter`."""

    left: int
    limit: int

    def spend(self, steps: int) -> None:
        """Take steps before they are done; EvalError where that is too much."""
        ...


class Question(Protocol):
    """The body of a macro, with everything it reads beside its variable.

    `name` is equal for questions that have equal answers, None where that is not known. `on_facts` tells that
    of a node it reads nothing that placements change.
    """

    @property
    def name(self) -> Hashable | None: ...

    @property
    def on_facts(self) -> bool: ...

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        """Answer for each value; EvalError. What it costs is taken from `meter`."""
        ...

    def choose(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return the nodes of a live snapshot for which the answer is true, and the steps that no node took
        more of; None where they have to be asked one by one.
        """
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
        names = (*[each.name for each in self.filters], question.name)
        what = None if None in names else Name(names)
        counting = _Counting(self, what, partial(self._counted, question))
        return TopologyCount(self.key, counting.sums(meter), counting)

    @cached_property
    def _on_facts(self) -> bool:
        return all(each.on_facts for each in self.filters)

    def screen(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return the eligible among nodes that have the label; else as `Question.choose`."""
        steps = 0
        for each in self.filters:
            found = each.choose(nodes)
            if found is None:
                return None
            nodes, taken = found
            steps += taken
            if steps > each.meter().limit:
                return None
        return nodes, steps

    def _counted(
        self, question: Question, node: NodeInfo, before: Counted | None = None, new: Pods = ()
    ) -> Counted:
        known = before if self._on_facts else None
        if known is None and self.key not in node.labels:
            return NOT_COUNTED
        if known is not None and not known.takes_part:
            return known
        # Each node has steps of its own: the others must make no difference to whether it can be counted.
        meter = question.meter()
        pods, amount, takes_part = node.pods, 0, True
        try:
            if known is not None:
                amount, pods = known.amount, new
                meter.left -= known.steps
            else:
                takes_part = all(all(each.answers((node,), meter)) for each in self.filters)
            if takes_part:
                amount = _checked(amount + _total(question.answers(pods, meter)))
        except EvalError as error:
            if before is not None:
                # It may have been screened: for the steps that it takes by itself there may be enough.
                return self._counted(question, node)
            return Counted(True, 0, min(meter.limit, meter.limit - meter.left), error.message)
        return Counted(takes_part, amount, meter.limit - meter.left)


@dataclass(frozen=True, slots=True, eq=False)
class _Counting:
    """Counts again and again; `what` names what is counted."""

    topology: Topology
    what: Name | None
    measure: Measure

    def sums(self, meter: Meter) -> Sums:
        topology, snapshot = self.topology, self.topology.snapshot
        store = TallyStore.of(snapshot)
        sums = store.sums(snapshot, topology.key, self.what, self.measure, topology.screen)
        # The same, whether it was counted now or before.
        meter.spend(len(snapshot) + sums.steps // _SHARED_STEPS)
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
        return self if sums is self.sums else replace(self, sums=sums)

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
        return frozenset((self.key,)) if len(self.sums.numbers) <= FEW_DOMAINS else None

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

    @property
    def nothing(self) -> PodTermCount | None:
        """What any question comes to where no pod has such terms; else None."""
        return None if self.are_there() else PodTermCount(_NO_SUMS, self)

    def are_there(self) -> bool:
        """Tell whether a pod has such terms."""
        return TallyStore.of(self.snapshot).has_terms(self.snapshot, self.kind)

    def count(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def sum(self, question: Question, meter: Meter) -> PodTermCount:
        return self._summed(question, meter)

    def _summed(self, question: Question, meter: Meter) -> PodTermCount:
        def appraise(term: PodAffinityTerm) -> Worth:
            # Each term has steps of its own, as each node has.
            own = question.meter()
            try:
                amount = _total(question.answers((term,), own))
            except EvalError as error:
                return Worth(0, min(own.limit, own.limit - own.left), error.message)
            return Worth(amount, own.limit - own.left)

        asking = _Asking(self, None if question.name is None else Name(question.name), appraise)
        count = PodTermCount(asking.sums(meter), self, asking)
        if self.watch is not None:
            self.watch(count)
        return count


@dataclass(frozen=True, slots=True, eq=False)
class _Asking:
    """Asks terms again and again; `what` names the question."""

    terms: PodTerms
    what: Name | None
    appraise: Appraisal

    def counted(self) -> TermSums:
        snapshot = self.terms.snapshot
        return TallyStore.of(snapshot).term_sums(snapshot, self.terms.kind, self.what, self.appraise)

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
        return self if sums is self.sums else replace(self, sums=sums)

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
        are_few = all(len(amounts.numbers) <= FEW_DOMAINS for amounts in tables.values())
        return frozenset(tables) if are_few else None

    def total(self) -> int:
        return self.sums.total


_NO_SUMS: Final = TermSums({}, 0, 0, object())


def _total(answers: Iterable[Value]) -> int:
    """Add up numbers; of conditions, those that hold."""
    return _checked(sum(map(int, answers)))


def _checked(amount: int) -> int:
    if INT_MIN <= amount <= INT_MAX:
        return amount
    raise EvalError("integer overflow")

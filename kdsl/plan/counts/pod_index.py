"""Placed pods by their facts, such as labels and namespace: the pods of a selector, and those with equal
facts, are found at a cost that grows with their number.

A fact is indexed when it is first asked about, by one pass over all pods, and updated from then on. The
namespace is asked about as soon as the labels of a selector leave many pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar.meter import steps_of_value
from kdsl.eval.scalar.pod_keys import PodFact, PodFacts, PodKey
from kdsl.eval.values import Value
from kdsl.plan.counts.arrivals import Arrival, Pods

MAX_FACTS: Final = 64
"""The most facts that are indexed; beyond that the index starts over."""

MANY: Final = 64
"""The least number of pods for which those with another fact, such as the namespace, are looked for."""

_NAMESPACE: Final = PodFact("namespace")

Located: TypeAlias = tuple[int, PodInfo]
"""A pod and the row of its node."""
Posting: TypeAlias = dict[int, Located]
"""The pods that share a fact, with their rows, by id: an id is valid as long as its pod is referenced."""


class PodsByFact(dict[Value, Posting]):
    """The pods by the value of one fact, or by those of several. `longest` is the most steps that reading a
    value takes.
    """

    def __init__(self, fact: PodFact | PodFacts) -> None:
        self.value_of: PodKey = fact.reader if isinstance(fact, PodFact) else fact
        self.longest = 0

    def put(self, pods: Iterable[Located]) -> None:
        """Add pods."""
        value_of = self.value_of
        for located in pods:
            pod = located[1]
            value = value_of(pod)
            if value is None:
                continue
            posting = self.get(value)
            if posting is None:
                posting = self[value] = {}
                self.longest = max(self.longest, steps_of_value(value))
            posting[id(pod)] = located

    def drop(self, pods: Iterable[Located]) -> None:
        """Forget pods."""
        for _, pod in pods:
            value = self.value_of(pod)
            posting = self.get(value)
            if posting is not None:
                posting.pop(id(pod), None)
                if not posting:
                    del self[value]


class PodIndex:
    """The pods of a live snapshot by the values of their facts."""

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._facts: dict[PodFact | PodFacts, PodsByFact] = {}
        # The pods of each row that are indexed, and the arrivals since then.
        self._pods: dict[int, list[Located]] = {}
        self._arrived: dict[int, Pods | None] = {}

    def refresh(self, arrived: Sequence[Arrival] | None) -> None:
        """Take the arrivals at rows; None means all rows. They are indexed when the index is asked."""
        if arrived is None:
            self._forget()
        elif self._facts:
            for row, pods in arrived:
                before = self._arrived.get(row, ())
                self._arrived[row] = None if before is None or pods is None else before + pods

    def _forget(self) -> None:
        self._facts.clear()
        self._pods.clear()
        self._arrived.clear()

    def _index_arrived(self) -> None:
        live, arrived = self._live, self._arrived
        # First: pods may have moved to another row with their node.
        for row, pods in arrived.items():
            if pods is None:
                gone = self._pods.pop(row, ())
                for values in self._facts.values():
                    values.drop(gone)
        for row, pods in arrived.items():
            if pods is None:
                pods = live.info(row).pods if live.names[row] else ()
            come = [(row, pod) for pod in pods]
            self._pods.setdefault(row, []).extend(come)
            for values in self._facts.values():
                values.put(come)
        arrived.clear()

    def matching(
        self, selector: LabelSelector, namespaces: Collection[str] | None = None
    ) -> list[Located] | None:
        """Return the pods that may match a selector, with their rows; None if that would be most pods.

        Only pods of some namespaces match, if they are given.
        """
        best: list[Posting] | None = None
        for requirement in selector.requirements:
            found = self._postings(requirement)
            if found is not None and (best is None or _size(found) < _size(best)):
                best = found
        if namespaces is not None and (best is None or _size(best) >= MANY):
            best = self._narrower(namespaces, best)
        if best is None:
            return None
        return [each for posting in best for each in posting.values()]

    def by_fact(self, fact: PodFact | PodFacts) -> PodsByFact:
        """Return all pods by a fact, or by several."""
        if self._arrived:
            self._index_arrived()
        values = self._facts.get(fact)
        if values is None:
            if len(self._facts) >= MAX_FACTS:
                self._forget()
            if not self._facts:
                self._locate_all()
            values = self._facts[fact] = PodsByFact(fact)
            values.put(chain.from_iterable(self._pods.values()))
        return values

    def _locate_all(self) -> None:
        rows = self._live.pod_counts.nonzero()[0]
        for row, node in zip(rows.tolist(), self._live.infos(rows), strict=True):
            self._pods[row] = [(row, pod) for pod in node.pods]

    def _narrower(self, namespaces: Collection[str], best: list[Posting] | None) -> list[Posting] | None:
        """Return the pods of some namespaces, or `best` (None: all pods) if these are not far fewer."""
        values = self.by_fact(_NAMESPACE)
        found = [values[name] for name in namespaces if name in values]
        most = _size(values.values() if best is None else best)
        return found if 2 * _size(found) <= most else best

    def _postings(self, requirement: LabelRequirement) -> list[Posting] | None:
        if requirement.operator is Operator.IN:
            values = self.by_fact(PodFact("labels", requirement.key))
            return [values[value] for value in requirement.values if value in values]
        if requirement.operator is Operator.EXISTS:
            return list(self.by_fact(PodFact("labels", requirement.key)).values())
        return None


def _size(postings: Iterable[Posting]) -> int:
    return sum(map(len, postings))

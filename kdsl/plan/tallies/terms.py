"""The affinity terms of the pods that run: which distinct ones there are, and in which domains.

Terms that mean the same are one, however many pods have it, so that a rule asks each of them once. A node
whose pods have no terms costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum

from kdsl.cluster.node import NodeInfo
from kdsl.cluster.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import Snapshot

Domain = tuple[str, str]
"""A topology key and one of its values."""
Placed = tuple[PodAffinityTerm, str]
"""A term and the domain that a pod with it runs in."""


class TermKind(StrEnum):
    """Which terms of pods are meant: fields of `PodInfo`."""

    REQUIRED_AFFINITY = "required_affinity"
    REQUIRED_ANTI_AFFINITY = "required_anti_affinity"
    PREFERRED_AFFINITY = "preferred_affinity"
    PREFERRED_ANTI_AFFINITY = "preferred_anti_affinity"


class TermIndex:
    """The terms of one kind over a live snapshot."""

    def __init__(self, kind: TermKind) -> None:
        self._kind = kind
        self._rows: dict[int, tuple[Placed, ...]] = {}
        self._domains: dict[PodAffinityTerm, Counter[str]] = {}

    @property
    def is_empty(self) -> bool:
        """Tell whether no pod on a node has such terms."""
        return not self._domains

    def put(self, row: int, node: NodeInfo | None) -> None:
        """Take in what a row has become; None where it has no node."""
        placed = () if node is None or not node.pods else tuple(_placed(self._kind, node))
        before = self._rows.pop(row, ())
        if before:
            self._remove(before)
        if placed:
            self._rows[row] = placed
            for term, domain in placed:
                self._domains.setdefault(term, Counter())[domain] += 1

    def sums(self, snapshot: Snapshot, value: Callable[[PodAffinityTerm], int]) -> dict[Domain, int]:
        """Add up the value of the terms by the domains of the pods that have them; `value` is asked once for
        each distinct term.
        """
        values = {term: value(term) for term in self._domains}
        sums: Counter[Domain] = Counter()
        for term, worth in values.items():
            if worth:
                for domain, pods in self._domains[term].items():
                    sums[term.topology_key, domain] += worth * pods
        for row in sorted(snapshot.changed_rows):
            for sign, placed in ((-1, self._rows.get(row, ())), (1, _placed(self._kind, snapshot.info(row)))):
                for term, domain in placed:
                    if term not in values:
                        values[term] = value(term)
                    sums[term.topology_key, domain] += sign * values[term]
        return sums

    def _remove(self, placed: tuple[Placed, ...]) -> None:
        for term, domain in placed:
            domains = self._domains[term]
            domains[domain] -= 1
            if not domains[domain]:
                del domains[domain]
            if not domains:
                del self._domains[term]


def _placed(kind: TermKind, node: NodeInfo) -> Iterator[Placed]:
    for pod in node.pods:
        for term in getattr(pod, kind):
            domain = node.labels.get(term.topology_key)
            if domain is not None:
                yield term, domain

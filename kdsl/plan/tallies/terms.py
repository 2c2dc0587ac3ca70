"""The affinity terms of the pods that run: which distinct ones there are, and in which domains.

Terms that mean the same are one, however many pods have it, so that a question asks each of them once. A node
whose pods have no terms costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from kdsl.cluster.node import NodeInfo
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import LiveSnapshot
from kdsl.plan.tallies.domains import DomainColumn

_SPARE: Final = 1024
"""So many moves are kept however few terms there are; else as many as there are terms of pods."""


Changed: TypeAlias = tuple[int, NodeInfo | None, tuple[PodInfo, ...] | None]
"""A row, its node if it has one, and the pods that have come to it where nothing else has changed."""


class TermKind(StrEnum):
    """Which terms of pods are meant: fields of `PodInfo`."""

    REQUIRED_AFFINITY = "required_affinity"
    REQUIRED_ANTI_AFFINITY = "required_anti_affinity"
    PREFERRED_AFFINITY = "preferred_affinity"
    PREFERRED_ANTI_AFFINITY = "preferred_anti_affinity"


class Placed(NamedTuple):
    """A term and the number of the domain that a pod with it runs in."""

    term: PodAffinityTerm
    number: int


class Move(NamedTuple):
    """A term of a pod that came to a domain (`pods` is 1) or went from it (-1). `is_edge`: no other pod has
    the term.
    """

    term: PodAffinityTerm
    number: int
    pods: int
    is_edge: bool


class TermIndex:
    """The terms of one kind over a live snapshot.

    `count` is how many terms of pods there are, `domains` how many of them by term and number of the domain.
    Domains are numbered anew with each `generation`.
    """

    def __init__(self, kind: TermKind, column_of: Callable[[str], DomainColumn]) -> None:
        self.kind = kind
        self.count = 0
        self.generation = 0
        self.domains: dict[PodAffinityTerm, Counter[int]] = {}
        self._column_of = column_of
        # The columns of the keys of terms, each with the generation that numbers are of.
        self._columns: dict[str, tuple[DomainColumn, int]] = {}
        self._rows: dict[int, tuple[Placed, ...]] = {}
        self._moves: list[Move] = []
        # How many moves were dropped.
        self._first = 0

    @property
    def is_empty(self) -> bool:
        """Tell whether no pod on a node has such terms."""
        return not self.domains

    @property
    def position(self) -> int:
        """Where the log of moves ends."""
        return self._first + len(self._moves)

    def since(self, position: int) -> list[Move] | None:
        """Return the moves after a position; None where they are not known any more."""
        return None if position < self._first else self._moves[position - self._first :]

    def refresh(self, live: LiveSnapshot, changed: Sequence[Changed] | None) -> None:
        """Take in what rows have become, None for all of them."""
        if changed is not None and self.is_empty and not self._are_terms_of(changed):
            return
        for column, generation in self._columns.values():
            column.refresh(live)
            if column.generation != generation:
                changed = None
        if changed is None:
            self._forget()
            nodes = ((row, live.info(row)) for row in live.pod_counts.nonzero()[0].tolist())
            changed = [(row, node, None) for row, node in nodes if node.affine_pods]
        for row, node, new in changed:
            self._put(row, node, new)
        if len(self._moves) > 2 * (self.count + _SPARE):
            dropped = len(self._moves) // 2
            del self._moves[:dropped]
            self._first += dropped

    def _are_terms_of(self, changed: Iterable[Changed]) -> bool:
        """Tell whether pods that may be new have such terms."""
        for _, node, new in changed:
            pods = new if new is not None else () if node is None else node.pods
            if any(getattr(pod, self.kind) for pod in pods):
                return True
        return False

    def placed_on(self, row: int) -> tuple[Placed, ...]:
        """Return the terms of the pods on a row of the live snapshot."""
        return self._rows.get(row, ())

    def column(self, topology_key: str) -> DomainColumn:
        """Return the domains of a topology key, as they were at the last refresh."""
        known = self._columns.get(topology_key)
        if known is None:
            column = self._column_of(topology_key)
            known = self._columns[topology_key] = column, column.generation
        return known[0]

    def _forget(self) -> None:
        self.generation += 1
        self.count = self._first = 0
        for known in (self._rows, self.domains, self._columns, self._moves):
            known.clear()

    def _put(self, row: int, node: NodeInfo | None, new: tuple[PodInfo, ...] | None) -> None:
        if new is None:
            for term, number in self._rows.pop(row, ()):
                self._move(term, number, -1)
            new = () if node is None else node.pods
        if node is None:
            return
        for term, _ in placed_terms(self.kind, node, new):
            number = int(self.column(term.topology_key).ids[row])
            self._move(term, number, 1)
            self._rows[row] = (*self._rows.get(row, ()), Placed(term, number))

    def _move(self, term: PodAffinityTerm, number: int, pods: int) -> None:
        domains = self.domains.get(term)
        is_edge = domains is None
        if domains is None:
            domains = self.domains[term] = Counter()
        domains[number] += pods
        if not domains[number]:
            del domains[number]
            if not domains:
                del self.domains[term]
                is_edge = True
        self.count += pods
        self._moves.append(Move(term, number, pods, is_edge))


def placed_terms(
    kind: TermKind, node: NodeInfo, pods: Iterable[PodInfo]
) -> Iterator[tuple[PodAffinityTerm, str]]:
    """Yield the terms of some pods of a node, each with its domain, where the node is in one."""
    labels = node.labels
    for pod in pods:
        for term in getattr(pod, kind):
            domain = labels.get(term.topology_key)
            if domain is not None:
                yield term, domain

"""The affinity terms of placed pods: the distinct ones, and their domains.

Terms with one meaning are one term, so that a question asks it once. A node whose pods have no terms costs
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from kdsl.base.change_log import ChangeLog
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selector_index import RequiredLabels, Scope, SelectorIndex, scopes_of
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.counts.arrivals import Arrival
from kdsl.plan.counts.sums import NO_DOMAIN, domains_of


class TermKind(StrEnum):
    """The kinds of terms of pods: fields of `PodInfo`."""

    REQUIRED_AFFINITY = "required_affinity"
    REQUIRED_ANTI_AFFINITY = "required_anti_affinity"
    PREFERRED_AFFINITY = "preferred_affinity"
    PREFERRED_ANTI_AFFINITY = "preferred_anti_affinity"

    # The hot path: that of an Enum is written in Python.
    __hash__ = str.__hash__


PlacedTerm: TypeAlias = tuple[PodAffinityTerm, int]
"""A term and the number of the domain that a pod with it runs in."""


class Move(Struct, frozen=True, eq=False):
    """A pod's term that came to a domain (1) or left it (-1). `is_first_or_last`: no other pod has it."""

    term: PodAffinityTerm
    required: RequiredLabels
    scopes: Collection[Scope]
    number: int
    pods: int
    is_first_or_last: bool


class TermIndex:
    """The terms of one kind over a live snapshot.

    `count` is the number of terms of pods, `domains` their numbers by term and domain, `labels` the distinct
    terms by required label, `moves` the log of changes. `growth` changes with new rows or domains. `moved_at`
    is the version of the last change, `distinct_changed_at` that of the last new or removed term.
    """

    def __init__(self, kind: TermKind, live: LiveSnapshot) -> None:
        self.kind = kind
        self.count = 0
        self.growth = 0
        self.moved_at = self.distinct_changed_at = live.version
        self.domains: dict[PodAffinityTerm, dict[int, int]] = {}
        self.labels: SelectorIndex[PodAffinityTerm] = SelectorIndex()
        self._terms_of: Callable[[PodInfo], tuple[PodAffinityTerm, ...]] = attrgetter(kind.value)
        # The columns of the keys of terms, each with the numbers that are in use.
        self._columns: dict[str, tuple[FactColumn, object]] = {}
        self._rows: dict[int, tuple[PlacedTerm, ...]] = {}
        self.moves: ChangeLog[Move] = ChangeLog()
        self._live = live

    def refresh(self, arrived: Sequence[Arrival] | None) -> None:
        """Apply the arrivals at rows; None means all rows."""
        if arrived is None:
            self._begin()
            return
        may_have_grown = bool(self._columns)
        for row, pods in arrived:
            if pods is None:
                if may_have_grown:
                    may_have_grown = False
                    self.growth += 1
                    self.moved_at = self._live.version
                    if self._is_renumbered():
                        self._begin()
                        return
                for term, number in self._rows.pop(row, ()):
                    self._move(term, number, -1)
                pods = self._live.info(row).pods if self._live.names[row] else ()
            # Most pods have no terms.
            for terms in filter(None, map(self._terms_of, pods)):
                self._put(row, terms)

    def _put(self, row: int, terms: Iterable[PodAffinityTerm]) -> None:
        """Add the terms of a pod that came to a row."""
        for term in terms:
            number = self.column(term.topology_key).codes.item(row)
            if number != NO_DOMAIN:
                self._rows[row] = (*self._rows.get(row, ()), (term, number))
                self._move(term, number, 1)

    def placed_on(self, row: int) -> tuple[PlacedTerm, ...]:
        """Return the terms of the pods on a row of the live snapshot."""
        return self._rows.get(row, ())

    def column(self, topology_key: str) -> FactColumn:
        """Return the domains of a topology key, as they were at the last refresh."""
        known = self._columns.get(topology_key)
        if known is None:
            column = domains_of(self._live, topology_key)
            known = self._columns[topology_key] = column, column.numbers
        return known[0]

    def _is_renumbered(self) -> bool:
        """Add new domains. Return whether the domains of a key were renumbered."""
        columns = {key: domains_of(self._live, key) for key in self._columns}
        return any(columns[key].numbers is not numbers for key, (_, numbers) in self._columns.items())

    def _begin(self) -> None:
        self.count = 0
        for known in (self._rows, self.domains, self._columns):
            known.clear()
        self.labels.clear()
        rows = self._live.pod_counts.nonzero()[0]
        # By key, the number of the domain at a row. Not by `_put`: no reader follows these moves, and looking
        # up each column again takes a quarter more time.
        number_at: dict[str, Callable[[int], int]] = {}
        for row, node in zip(rows.tolist(), self._live.infos(rows), strict=True):
            if not node.affine_pods:
                continue
            placed: list[PlacedTerm] = []
            for term in chain.from_iterable(map(self._terms_of, node.pods)):
                key = term.topology_key
                if key not in number_at:
                    number_at[key] = self.column(key).codes.item
                number = number_at[key](row)
                if number != NO_DOMAIN:
                    placed.append((term, number))
            if placed:
                self._rows[row] = tuple(placed)
        for (term, number), pods in Counter(chain.from_iterable(self._rows.values())).items():
            self._domains_of(term)[number] = pods
            self.count += pods
        # Readers that are behind must start over.
        self.moves.start_over()
        self.moved_at = self.distinct_changed_at = self._live.version

    def _domains_of(self, term: PodAffinityTerm) -> dict[int, int]:
        """Return the number of pods with a term in each domain, to be changed; a new term has none."""
        domains = self.domains.get(term)
        if domains is None:
            domains = self.domains[term] = {}
            self.labels.put(term, term.selector, scopes_of(term.namespaces, term.namespace_selector))
        return domains

    def _move(self, term: PodAffinityTerm, number: int, pods: int) -> None:
        is_first_or_last = term not in self.domains
        domains = self._domains_of(term)
        required, scopes = self.labels.required_by(term)
        domains[number] = domains.get(number, 0) + pods
        if not domains[number]:
            del domains[number]
            if not domains:
                del self.domains[term]
                self.labels.drop(term)
                is_first_or_last = True
        self.moved_at = self._live.version
        if is_first_or_last:
            self.distinct_changed_at = self._live.version
        self.count += pods
        self.moves.note(Move(term, required, scopes, number, pods, is_first_or_last), self.count)


def placed_terms(
    kind: TermKind, node: NodeInfo, pods: Iterable[PodInfo]
) -> Iterator[tuple[PodAffinityTerm, str]]:
    """Yield the terms of some pods of a node, each with its domain, if the node has one."""
    labels = node.labels
    for pod in pods:
        for term in getattr(pod, kind):
            domain = labels.get(term.topology_key)
            if domain is not None:
                yield term, domain

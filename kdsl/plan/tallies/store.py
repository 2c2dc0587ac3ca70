"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import partial
from threading import RLock
from typing import Final

from kdsl.cluster.changes import ChangedRows
from kdsl.cluster.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.tallies.domains import DomainColumn
from kdsl.plan.tallies.seen import Seen
from kdsl.plan.tallies.sums import Sums
from kdsl.plan.tallies.tally import Measure, Screen, Tally
from kdsl.plan.tallies.terms import Changed, TermIndex, TermKind
from kdsl.plan.tallies.worths import Appraisal, TermSums, TermTally

MAX_BYTES: Final = 64 << 20
"""What the tallies of a cluster may take; those used longest ago go first. A tally of 5,000 rows takes about
200 kB. `MIN_TALLIES` stay in any case.
"""
MIN_TALLIES: Final = 4
MAX_COLUMNS: Final = 64
"""The most topology keys whose domains are kept."""
_OVERHEAD: Final = 1024
"""About what a tally takes beside its columns, in bytes."""


class Name:
    """What is counted, as a key: names are large, so the hash is computed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        self._value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self._value == other._value


class TallyStore:
    """Tallies by what they count, domain columns by topology key, term indexes by kind.

    Thread-safe: one at a time is brought up to date, or counted for an overlay.
    """

    def __init__(self) -> None:
        self._tallies: OrderedDict[Hashable, Tally | TermTally] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0
        self._columns: OrderedDict[str, DomainColumn] = OrderedDict()
        self._terms: dict[TermKind, TermIndex] = {}
        self._changed = ChangedRows()
        self._seen = Seen()
        self._version = -1
        # Counting may ask for another count.
        self._lock = RLock()

    @staticmethod
    def of(snapshot: Snapshot) -> TallyStore:
        """Return the store of a cluster, from its snapshot or an overlay of it."""
        kept = snapshot.live.kept
        store = kept.get(TallyStore)
        if store is None:
            store = kept.setdefault(TallyStore, TallyStore())
        assert isinstance(store, TallyStore)
        return store

    def sums(
        self,
        snapshot: Snapshot,
        topology_key: str,
        what: Name | None,
        measure: Measure,
        screen: Screen,
    ) -> Sums:
        """Return the sums by the domains of a topology key; EvalError where a node could not be counted.

        `what` names what is counted, the same for measures that count alike; without it nothing is kept.
        `screen` is as for a `Tally`.
        """
        with self._lock:
            name = (topology_key, what)
            tally = None if what is None else self._tallies.get(name)
            if tally is None:
                tally = Tally(self._column(snapshot.live, topology_key))
            assert isinstance(tally, Tally)
            try:
                return tally.sums(snapshot, measure, screen)
            finally:
                if what is not None:
                    self._keep(name, tally)

    def has_terms(self, snapshot: Snapshot, kind: TermKind) -> bool:
        """Tell whether a pod has terms of a kind, or may have on the overlay asked about."""
        if snapshot.is_overlay:
            return True
        if self._version != snapshot.version:
            self._refresh_terms(snapshot.live)
        return not self._terms[kind].is_empty

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, what: Name | None, appraise: Appraisal
    ) -> TermSums:
        """Add up what the terms of a kind are worth, by domain; EvalError where a term could not be asked.

        `what` names the question, the same for those that find the same; without it nothing is kept.
        """
        with self._lock:
            live = snapshot.live
            if self._version != live.version:
                self._refresh_terms(live)
            index = self._terms[kind]
            name = (kind, what)
            tally = None if what is None else self._tallies.get(name)
            if tally is None:
                tally = TermTally()
            assert isinstance(tally, TermTally)
            try:
                return tally.sums(index, snapshot, appraise)
            finally:
                if what is not None:
                    self._keep(name, tally)

    def _keep(self, name: Hashable, tally: Tally | TermTally) -> None:
        self._tallies[name] = tally
        self._tallies.move_to_end(name)
        size = tally.nbytes + _OVERHEAD
        if size == self._sizes.get(name):
            return
        self._bytes += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        while self._bytes > MAX_BYTES and len(self._tallies) > MIN_TALLIES:
            oldest, _ = self._tallies.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)

    def _refresh_terms(self, live: LiveSnapshot) -> None:
        with self._lock:
            if not self._terms:
                self._terms = {kind: TermIndex(kind, partial(self._column, live)) for kind in TermKind}
            rows = self._changed.take(live.fact_changes, live.usage_changes)
            changed = None if rows is None else [self._seen.look(live, row) for row in rows]
            if changed is None or self._may_concern_terms(changed):
                for index in self._terms.values():
                    index.refresh(live, changed)
            self._version = live.version

    def _may_concern_terms(self, changed: Sequence[Changed]) -> bool:
        """Tell whether a pod has terms, or has some now: most clusters are without."""
        has_some = any(index.count for index in self._terms.values())
        return has_some or any(node is not None and node.affine_pods for _, node, _ in changed)

    def _column(self, live: LiveSnapshot, topology_key: str) -> DomainColumn:
        """Return the domains of a topology key by row of the live snapshot, up to date."""
        column = self._columns.get(topology_key)
        if column is None:
            column = self._columns[topology_key] = DomainColumn(topology_key)
        self._columns.move_to_end(topology_key)
        # Who was given a column holds on to it, so one that goes from here is not lost to them.
        while len(self._columns) > MAX_COLUMNS:
            self._columns.popitem(last=False)
        column.refresh(live)
        return column

"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Final

from kdsl.cluster.changes import ChangedRows
from kdsl.cluster.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.tallies.domains import DomainColumn
from kdsl.plan.tallies.tally import Measure, Sums, Tally
from kdsl.plan.tallies.terms import Domain, TermIndex, TermKind

MAX_BYTES: Final = 64 << 20
"""What the tallies of a cluster may take; those used longest ago go first. A tally of 5,000 rows takes about
200 kB. `MIN_TALLIES` stay in any case.
"""
MIN_TALLIES: Final = 4
MAX_COLUMNS: Final = 64
"""The most topology keys whose domains are kept."""


class TallyStore:
    """Tallies by what they count, domain columns by topology key, term indexes by kind.

    Thread-safe: one at a time is brought up to date, or counted for an overlay.
    """

    def __init__(self) -> None:
        self._tallies: OrderedDict[Hashable, Tally] = OrderedDict()
        self._columns: OrderedDict[str, DomainColumn] = OrderedDict()
        self._terms = {kind: TermIndex(kind) for kind in TermKind}
        self._changed = ChangedRows()
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

    def sums(self, snapshot: Snapshot, topology_key: str, what: Hashable | None, measure: Measure) -> Sums:
        """Return the sums by the domains of a topology key; EvalError where a node could not be counted.

        `what` names what is counted, the same for measures that count alike; without it nothing is kept.
        """
        with self._lock:
            if what is None:
                return Tally(self.column(snapshot, topology_key)).sums(snapshot, measure)
            name = (topology_key, what)
            tally = self._tallies.get(name)
            if tally is None:
                tally = self._tallies[name] = Tally(self.column(snapshot, topology_key))
            self._tallies.move_to_end(name)
            try:
                return tally.sums(snapshot, measure)
            finally:
                capacity = max(MIN_TALLIES, MAX_BYTES // max(1, tally.nbytes))
                while len(self._tallies) > capacity:
                    self._tallies.popitem(last=False)

    def has_terms(self, snapshot: Snapshot, kind: TermKind) -> bool:
        """Tell whether a pod has terms of a kind, or may have on the overlay asked about."""
        if snapshot.is_overlay:
            return True
        self._refresh_terms(snapshot.live)
        return not self._terms[kind].is_empty

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, value: Callable[[PodAffinityTerm], int]
    ) -> dict[Domain, int]:
        """Add up the value of the terms of a kind by domain; `value` may raise EvalError."""
        with self._lock:
            self._refresh_terms(snapshot.live)
            return self._terms[kind].sums(snapshot, value)

    def _refresh_terms(self, live: LiveSnapshot) -> None:
        if self._version == live.version:
            return
        with self._lock:
            rows = self._changed.take(live.fact_changes, live.usage_changes)
            for row in range(len(live.names)) if rows is None else rows:
                node = live.info(row) if live.names[row] else None
                for index in self._terms.values():
                    index.put(row, node)
            self._version = live.version

    def column(self, snapshot: Snapshot, topology_key: str) -> DomainColumn:
        """Return the domains of a topology key by row of the live snapshot, up to date."""
        with self._lock:
            column = self._columns.get(topology_key)
            if column is None:
                column = self._columns[topology_key] = DomainColumn(topology_key)
            self._columns.move_to_end(topology_key)
            # A tally holds on to the column it was made with, so one that goes from here is not lost to it.
            while len(self._columns) > MAX_COLUMNS:
                self._columns.popitem(last=False)
            column.refresh(snapshot.live)
            return column

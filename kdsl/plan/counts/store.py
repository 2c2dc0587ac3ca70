"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Any, Final

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.plan.counts.arrivals import Arrival, Arrivals
from kdsl.plan.counts.measures import Measure
from kdsl.plan.counts.pod_index import PodFact, PodIndex, PodsByFact
from kdsl.plan.counts.selected import sums_of_selected
from kdsl.plan.counts.stored import StoredTally, TallyKey
from kdsl.plan.counts.sums import Sums
from kdsl.plan.counts.tally import Tally
from kdsl.plan.counts.term_tally import CountTerm, TermSums, TermTally
from kdsl.plan.counts.terms import TermIndex, TermKind

MAX_BYTES: Final = 64 << 20
"""The most bytes of all tallies of a cluster; the least recently used go first. A tally of 5,000 rows takes
100 to 200 kB. `MIN_TALLIES` are kept in any case.
"""
MIN_TALLIES: Final = 4
MAX_FROM_INDEX: Final = 64
"""The most questions whose sums from the index of pods are remembered; a repeated question beyond that gets
no tally yet.
"""
_FEW_ARRIVALS: Final = 40
"""As many arrivals as one count from the index of pods costs, besides one for each pod that it reads."""
_OVERHEAD: Final = 1024
"""The approximate bytes of a tally without its columns."""


class TallyStore:
    """Tallies by key, and term indexes by kind.

    Thread-safe: one tally at a time is updated or counted for an overlay.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._tallies: dict[TallyKey | None, Any] = {}
        self._bytes = self._uses = 0
        self._terms = {kind: TermIndex(kind, live) for kind in TermKind}
        self._arrivals = Arrivals()
        self._pods = PodIndex(live)
        # The latest sums from the index of pods, by question, with their position in the log of arrivals.
        self._from_index: dict[TallyKey, tuple[int, Sums]] = {}
        self._version = -1
        # A count may ask for another count.
        self._lock = RLock()

    @staticmethod
    def of(snapshot: Snapshot) -> TallyStore:
        """Return the store of a cluster, from its snapshot or an overlay."""
        store: TallyStore = snapshot.live.kept[TallyStore]
        return store

    def sums(self, snapshot: Snapshot, key: TallyKey | None, measure: Measure) -> Sums:
        """Return the sums by domain; EvalError if a node could not be counted.

        Measures that count the same have one key; without a key the tally is not stored.
        """
        tally: Tally | None = self._tallies.get(key)
        if tally is not None and tally.version == snapshot.version:
            # It is not changed before the next version, so no lock is needed.
            return tally.sums(snapshot, self._arrivals, self._pods, measure)
        with self._lock:
            self._catch_up()
            tally = tally or self._tallies.get(key)
            if tally is not None and self._is_behind(tally.position, measure):
                tally = None
            if tally is None and not snapshot.is_overlay:
                found = self._sums_from_index(key, measure)
                if found is not None:
                    return found
            tally = tally or Tally(self._live, measure.key)
            try:
                return tally.sums(snapshot, self._arrivals, self._pods, measure)
            finally:
                self._keep(key, tally)

    def _sums_from_index(self, key: TallyKey | None, measure: Measure) -> Sums | None:
        """Return the sums from the index of pods for a question that was not asked before, or not since many
        arrivals; None for others.
        """
        position = self._arrivals.position
        known = None if key is None else self._from_index.get(key)
        if known is not None:
            if known[0] == position:
                return known[1]
            if not self._is_behind(known[0], measure):
                return None
        found = sums_of_selected(self._live, self._pods, measure)
        if found is not None and key is not None:
            if key in self._tallies:
                self._drop(key)
            self._from_index.pop(key, None)
            if len(self._from_index) >= MAX_FROM_INDEX:
                del self._from_index[next(iter(self._from_index))]
            self._from_index[key] = position, found
        return found

    def _is_behind(self, position: int, measure: Measure) -> bool:
        """Return whether following the arrivals since a position costs more than counting from the index."""
        arrivals = self._arrivals.position - position
        if arrivals <= _FEW_ARRIVALS or not measure.on_facts:
            return False
        selected = measure.selected(self._pods)
        return selected is not None and arrivals > _FEW_ARRIVALS + len(selected)

    def matching(self, selector: LabelSelector) -> list[tuple[int, PodInfo]] | None:
        """Return the pods that may match a selector, with their rows; None if that would be most pods."""
        with self._lock:
            self._catch_up()
            return self._pods.matching(selector)

    def pods_by(self, fact: PodFact) -> PodsByFact:
        """Return all placed pods by a fact."""
        with self._lock:
            self._catch_up()
            return self._pods.by_fact(fact)

    def has_terms(self, snapshot: Snapshot, kind: TermKind) -> bool:
        """Return whether a placed pod has terms of a kind; always true for an overlay."""
        if snapshot.is_overlay:
            return True
        if self._version != snapshot.version:
            with self._lock:
                self._catch_up()
        return bool(self._terms[kind].domains)

    def tally(self, key: TallyKey, measure: Measure) -> Tally:
        """Return the tally of the live snapshot for a question; EvalError if a node could not be counted."""
        with self._lock:
            self._catch_up()
            tally: Tally | None = self._tallies.get(key)
            if tally is None or self._is_behind(tally.position, measure):
                tally = Tally(self._live, measure.key)
            try:
                tally.sums(self._live, self._arrivals, self._pods, measure)
            finally:
                self._keep(key, tally)
            return tally

    def term_tally(self, kind: TermKind, key: TallyKey, count_term: CountTerm) -> tuple[TermIndex, TermTally]:
        """Return the terms of a kind and their tally for a question, both of the live snapshot; EvalError if
        a term could not be counted.
        """
        with self._lock:
            self.term_sums(self._live, kind, key, count_term)
            return self._terms[kind], self._tallies[key]

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, key: TallyKey | None, count_term: CountTerm
    ) -> TermSums:
        """Return the sums of the terms of a kind, by domain; EvalError if a term could not be counted.

        Questions with the same counts have one key; without a key the tally is not stored.
        """
        tally: TermTally | None = self._tallies.get(key)
        index = self._terms[kind]
        if tally is not None and self._version == snapshot.version and tally.is_valid(index):
            return tally.latest
        with self._lock:
            self._catch_up()
            tally = tally or self._tallies.get(key) or TermTally()
            try:
                return tally.sums(index, snapshot, count_term)
            finally:
                self._keep(key, tally)

    def _catch_up(self) -> None:
        """Apply the arrivals since the last version, once for all tallies."""
        live = self._live
        if self._version == live.version:
            return
        arrived = self._arrivals.refresh(live)
        unmoved = self._arrivals.unmoved
        if unmoved and arrived is not None:
            # Pods and terms by label do not depend on other facts.
            arrived = [each for each in arrived if each[0] not in unmoved]
        self._pods.refresh(arrived)
        if arrived is None or not self._arrivals.are_pods:
            for index in self._terms.values():
                index.refresh(arrived)
        else:
            self._put_terms(arrived)
        self._version = live.version

    def _put_terms(self, arrived: Iterable[Arrival]) -> None:
        """Add the terms of pods that arrived. Most pods have none."""
        for row, pods in arrived:
            for pod in pods or ():
                if pod.has_affinity_terms:
                    for index in self._terms.values():
                        terms = index.terms_of(pod)
                        if terms:
                            index.put(row, terms)

    def _keep(self, key: TallyKey | None, tally: StoredTally) -> None:
        """Store a tally, whose size may have changed."""
        size = tally.nbytes + _OVERHEAD
        if key is None:
            return
        self._uses += 1
        tally.used = self._uses
        if tally.booked == size:
            return
        if key in self._tallies:
            self._drop(key)
        self._tallies[key] = tally
        self._bytes += size
        tally.booked = size
        if self._bytes > MAX_BYTES and len(self._tallies) > MIN_TALLIES:
            self._drop_least_used()

    def _drop_least_used(self) -> None:
        """Drop tallies until the others fit, the least recently used one first."""
        for key in sorted(self._tallies, key=lambda key: self._tallies[key].used)[:-MIN_TALLIES]:
            if self._bytes <= MAX_BYTES:
                break
            self._drop(key)

    def _drop(self, key: TallyKey | None) -> None:
        tally = self._tallies.pop(key)
        self._bytes -= tally.booked
        tally.booked = 0

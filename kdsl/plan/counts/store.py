"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Final

from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.counts.arrivals import Arrival, Arrivals
from kdsl.plan.counts.kept import Handle, Kept, KeptT, Name
from kdsl.plan.counts.measures import Measure
from kdsl.plan.counts.pod_index import PodIndex
from kdsl.plan.counts.selected import sums_of_selected
from kdsl.plan.counts.sums import Sums
from kdsl.plan.counts.tally import Tally
from kdsl.plan.counts.terms import TermIndex, TermKind
from kdsl.plan.counts.worths import Appraisal, TermSums, TermTally

MAX_BYTES: Final = 64 << 20
"""What the tallies of a cluster may take; those used longest ago go first. A tally of 5,000 rows takes 100 to
200 kB. `MIN_TALLIES` stay in any case.
"""
MIN_TALLIES: Final = 4
MAX_FIRST: Final = 64
"""So many questions are known to have been asked once; a question that comes again after more gets no tally
yet.
"""
_OVERHEAD: Final = 1024
"""About what a tally takes beside its columns, in bytes."""


class TallyStore:
    """Tallies by what they count, and term indexes by kind.

    Thread-safe: one at a time is brought up to date, or counted for an overlay.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._tallies: dict[Name, Kept] = {}
        self._bytes = 0
        self._terms = {kind: TermIndex(kind, live) for kind in TermKind}
        self._arrivals = Arrivals()
        self._pods = PodIndex(live)
        # Sums for questions that were asked at one version only, with that.
        self._first: dict[Name, tuple[int, Sums]] = {}
        self._version = -1
        # Counting may ask for another count.
        self._lock = RLock()

    @staticmethod
    def of(snapshot: Snapshot) -> TallyStore:
        """Return the store of a cluster, from its snapshot or an overlay of it."""
        live = snapshot.live
        store = live.kept.get(TallyStore)
        if store is None:
            store = live.kept.setdefault(TallyStore, TallyStore(live))
        assert isinstance(store, TallyStore)
        return store

    def sums(self, snapshot: Snapshot, handle: Handle[Tally], measure: Measure) -> Sums:
        """Return the sums by domain; EvalError where a node could not be counted.

        Handles have one name where their measures count alike.
        """
        tally = handle.tally()
        if tally is not None and tally.version == snapshot.version:
            # Nothing is written to it before the next version, so there is nothing to wait for.
            return tally.sums(snapshot, self._arrivals, measure)
        with self._lock:
            self._catch_up()
            tally = tally or self._find(handle, Tally)
            if tally is None and not snapshot.is_overlay:
                first = self._first_sums(handle.name, measure)
                if first is not None:
                    return first
            tally = tally or Tally(self._live, measure.key)
            try:
                return tally.sums(snapshot, self._arrivals, measure)
            finally:
                self._keep(handle, tally)

    def _first_sums(self, name: Name | None, measure: Measure) -> Sums | None:
        """Return the sums for a question that was not asked before at another version; None for others."""
        known = None if name is None else self._first.get(name)
        if known is not None:
            version, sums = known
            return sums if version == self._version else None
        found = sums_of_selected(self._live, self._pods, measure)
        if found is not None and name is not None:
            if len(self._first) >= MAX_FIRST:
                del self._first[next(iter(self._first))]
            self._first[name] = self._version, found
        return found

    def matching(self, selector: LabelSelector) -> list[tuple[int, PodInfo]] | None:
        """Return pods with their rows, all that a selector matches among them; None where that would be
        most.
        """
        with self._lock:
            self._catch_up()
            return self._pods.matching(selector)

    def has_terms(self, snapshot: Snapshot, kind: TermKind) -> bool:
        """Tell whether a pod has terms of a kind, or may have on the overlay asked about."""
        if snapshot.is_overlay:
            return True
        if self._version != snapshot.version:
            with self._lock:
                self._catch_up()
        return not self._terms[kind].is_empty

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, handle: Handle[TermTally], appraise: Appraisal
    ) -> TermSums:
        """Add up what the terms of a kind are worth, by domain; EvalError where a term could not be asked.

        Handles have one name where their appraisals find the same.
        """
        tally, index = handle.tally(), self._terms[kind]
        if tally is not None and self._version == snapshot.version and tally.is_good(index):
            return tally.latest
        with self._lock:
            self._catch_up()
            tally = tally or self._find(handle, TermTally) or TermTally()
            try:
                return tally.sums(index, snapshot, appraise)
            finally:
                self._keep(handle, tally)

    def _catch_up(self) -> None:
        """Take in what has come since the last version, once for all tallies."""
        live = self._live
        if self._version == live.version:
            return
        came = self._arrivals.refresh(live)
        self._pods.refresh(came)
        if came is None or _is_more_than_pods(came):
            for index in self._terms.values():
                index.refresh(came)
        else:
            self._put_terms(came)
        self._version = live.version

    def _put_terms(self, came: Iterable[Arrival]) -> None:
        """Take in the terms of pods that came. Most pods have none, and none has all kinds."""
        for row, pods in came:
            for pod in pods or ():
                if pod.has_affinity_terms:
                    for index in self._terms.values():
                        terms = index.terms_of(pod)
                        if terms:
                            index.put(row, terms)

    def _find(self, handle: Handle[KeptT], kind: type[KeptT]) -> KeptT | None:
        """Return the tally that is kept under the name of a handle."""
        tally = None if handle.name is None else self._tallies.get(handle.name)
        if tally is None:
            return None
        assert isinstance(tally, kind)
        handle.note(tally)
        return tally

    def _keep(self, handle: Handle[KeptT], tally: KeptT) -> None:
        """Keep a tally, which may have become larger."""
        size, name = tally.nbytes + _OVERHEAD, handle.name
        if name is None:
            return
        if name in self._tallies:
            self._drop(name)
        # The one that was brought up to date last is the last one to go.
        self._tallies[name] = tally
        self._bytes += size
        tally.booked = size
        handle.note(tally)
        while self._bytes > MAX_BYTES and len(self._tallies) > MIN_TALLIES:
            self._drop(next(iter(self._tallies)))

    def _drop(self, name: Name) -> None:
        tally = self._tallies.pop(name)
        self._bytes -= tally.booked
        tally.booked = 0


def _is_more_than_pods(came: Iterable[Arrival]) -> bool:
    """Tell whether something else than pods came to a node."""
    for _, pods in came:  # noqa: SIM110 - the hot path
        if pods is None:
            return True
    return False

"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import RLock
from typing import Final

from kdsl.cluster.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.tallies.arrivals import Arrival, Arrivals
from kdsl.plan.tallies.measures import Measure
from kdsl.plan.tallies.sums import Sums
from kdsl.plan.tallies.tally import Tally
from kdsl.plan.tallies.terms import TermIndex, TermKind
from kdsl.plan.tallies.worths import Appraisal, TermSums, TermTally

MAX_BYTES: Final = 64 << 20
"""What the tallies of a cluster may take; those used longest ago go first. A tally of 5,000 rows takes 100 to
200 kB. `MIN_TALLIES` stay in any case.
"""
MIN_TALLIES: Final = 4
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
    """Tallies by what they count, and term indexes by kind.

    Thread-safe: one at a time is brought up to date, or counted for an overlay.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._tallies: OrderedDict[Name, Tally | TermTally] = OrderedDict()
        self._sizes: dict[Name, int] = {}
        self._bytes = 0
        self._terms = {kind: TermIndex(kind, live) for kind in TermKind}
        self._arrivals = Arrivals()
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

    def sums(self, snapshot: Snapshot, name: Name | None, measure: Measure) -> Sums:
        """Return the sums by domain; EvalError where a node could not be counted.

        `name` says what is counted, the same for measures that count alike; without it nothing is kept.
        """
        with self._lock:
            self._catch_up()
            tally = self._use(name)
            if tally is None:
                tally = Tally(self._live, measure.key)
            assert isinstance(tally, Tally)
            try:
                return tally.sums(snapshot, self._arrivals, measure)
            finally:
                self._keep(name, tally)

    def has_terms(self, snapshot: Snapshot, kind: TermKind) -> bool:
        """Tell whether a pod has terms of a kind, or may have on the overlay asked about."""
        if snapshot.is_overlay:
            return True
        if self._version != snapshot.version:
            with self._lock:
                self._catch_up()
        return not self._terms[kind].is_empty

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, name: Name | None, appraise: Appraisal
    ) -> TermSums:
        """Add up what the terms of a kind are worth, by domain; EvalError where a term could not be asked.

        `name` says what is asked, the same for those that find the same; without it nothing is kept.
        """
        with self._lock:
            self._catch_up()
            index = self._terms[kind]
            tally = self._use(name)
            if tally is None:
                tally = TermTally()
            assert isinstance(tally, TermTally)
            try:
                return tally.sums(index, snapshot, appraise)
            finally:
                self._keep(name, tally)

    def _catch_up(self) -> None:
        """Take in what has come since the last version, once for all tallies."""
        live = self._live
        if self._version == live.version:
            return
        came = self._arrivals.refresh(live)
        # Most often a pod without terms has come, and nothing else.
        if came is None or _may_concern_terms(came):
            for index in self._terms.values():
                index.refresh(came)
        self._version = live.version

    def _use(self, name: Name | None) -> Tally | TermTally | None:
        """Return the tally that is kept, now the one used last."""
        tally = None if name is None else self._tallies.get(name)
        if name is not None and tally is not None:
            self._tallies.move_to_end(name)
        return tally

    def _keep(self, name: Name | None, tally: Tally | TermTally) -> None:
        """Keep a tally, which may have become larger."""
        size = tally.nbytes + _OVERHEAD
        if name is None or size == self._sizes.get(name):
            return
        self._tallies[name] = tally
        self._bytes += size - self._sizes.get(name, 0)
        self._sizes[name] = size
        while self._bytes > MAX_BYTES and len(self._tallies) > MIN_TALLIES:
            oldest, _ = self._tallies.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)


def _may_concern_terms(came: Iterable[Arrival]) -> bool:
    """Tell whether what came to nodes may change the terms of a cluster."""
    for _, pods in came:
        if pods is None:
            return True
        for pod in pods:
            if pod.has_affinity_terms:
                return True
    return False

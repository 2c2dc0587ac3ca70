"""The tallies of a cluster, kept with its live snapshot and bounded in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from threading import RLock
from typing import Any, Final, TypeVar

from msgspec import Struct

from kdsl.base.bounded_memo import Memo
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.aggregate import Question
from kdsl.eval.scalar.pod_keys import PodFact
from kdsl.plan.counts.arrivals import Arrivals
from kdsl.plan.counts.measures import Measure
from kdsl.plan.counts.pod_index import Located, PodIndex, PodsByFact
from kdsl.plan.counts.sums import Sums
from kdsl.plan.counts.tally import Tally
from kdsl.plan.counts.term_tally import TermSums, TermTally
from kdsl.plan.counts.terms import TermIndex, TermKind

MAX_BYTES: Final = 64 << 20
"""The most bytes of all tallies of a cluster; the least recently used go first. A tally of 5,000 rows takes
100 to 200 kB.
"""

T = TypeVar("T", Tally, TermTally)


class TallyKey(Struct, frozen=True, cache_hash=True):
    """The key of a tally. Keys are large, so the hash is computed once."""

    value: Hashable


class TallyStore:
    """Tallies by key, and term indexes by kind.

    Thread-safe: one tally at a time is updated or counted for an overlay.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._tallies: Memo[Any] = Memo(MAX_BYTES)
        self._terms = {kind: TermIndex(kind, live) for kind in TermKind}
        self._arrivals = Arrivals()
        self._pods = PodIndex(live)
        # The versions of the live snapshot, and of its terms, that they know.
        self._version = self._affinity_version = -1
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
        tally: Tally | None = self._tallies.find(key)
        if tally is not None and tally.version == snapshot.version:
            # It is not changed before the next version, so no lock is needed.
            return tally.sums(snapshot, self._arrivals, self._pods, measure)
        with self._lock:
            self._catch_up()
            tally = tally or self._kept(key, partial(Tally, measure.key))
            return tally.sums(snapshot, self._arrivals, self._pods, measure)

    def matching(self, selector: LabelSelector) -> list[Located] | None:
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
            tally = self._kept(key, partial(Tally, measure.key))
            tally.sums(self._live, self._arrivals, self._pods, measure, needs_rows=True)
            return tally

    def term_tally(self, kind: TermKind, key: TallyKey, question: Question) -> tuple[TermIndex, TermTally]:
        """Return the terms of a kind and their tally for a question, both of the live snapshot; EvalError if
        a term could not be counted.
        """
        with self._lock:
            self.term_sums(self._live, kind, key, question)
            return self._terms[kind], self._kept(key, TermTally)

    def term_sums(
        self, snapshot: Snapshot, kind: TermKind, key: TallyKey | None, question: Question
    ) -> TermSums:
        """Return the sums of the terms of a kind, by domain; EvalError if a term could not be counted.

        Questions with the same counts have one key; without a key the tally is not stored.
        """
        tally: TermTally | None = self._tallies.find(key)
        index = self._terms[kind]
        if tally is not None and self._version == snapshot.version and tally.is_valid(index):
            return tally.latest
        with self._lock:
            self._catch_up()
            tally = tally or self._kept(key, TermTally)
            return tally.sums(index, snapshot, question)

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
        if arrived is not None and self._affinity_version == live.affinity_version:
            # No pod with terms arrived, but some may have gone.
            arrived = [each for each in arrived if each[1] is None]
        if arrived != []:
            for index in self._terms.values():
                index.refresh(arrived)
        self._version, self._affinity_version = live.version, live.affinity_version

    def _kept(self, key: TallyKey | None, make: Callable[[], T]) -> T:
        """Return the tally of a key, a new one if there is none, which is stored if there is a key."""
        tally: T = make() if key is None else self._tallies.get(key, lambda known: True, make)
        return tally

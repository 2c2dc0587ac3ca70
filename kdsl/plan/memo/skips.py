"""Rules that skip all pods of a signature, known without running them.

Most pods have no volumes and no affinity, and most clusters have no pods with anti-affinity. So the reads of
`applies when` are recorded at run time: facts that it did not read cannot change its result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from threading import Lock
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import PodTermCount, PodTerms, Topology
from kdsl.plan.memo.signature_memo import SeenSignatures
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.epochs import Epoch, Epochs
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import PredicatePlugin, ScorePlugin
from kdsl.plan.rules.tightened import TightenedPlugin

MAX_SIGNATURES: Final = 1024
"""The most signatures that are kept; beyond that the table starts over."""
_PODS: Final = frozenset({"cluster.pods", "cluster.static"})

Rule = TypeVar("Rule", PredicatePlugin, ScorePlugin)


class RecordingView(ClusterView, frozen=True, eq=False):
    """A view of the cluster that records reads of its pods: `absent` are the kinds of terms that no pod has,
    `counts` the counts of terms with their marks, `other_reads` any other reads.
    """

    absent: set[TermKind] = field(default_factory=set)
    counts: list[tuple[PodTermCount, object]] = field(default_factory=list)
    other_reads: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        self.other_reads.append("nodes")
        return ClusterView(self.snapshot).nodes

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        self.other_reads.append("pods")
        return ClusterView(self.snapshot).pods

    def topology(self, key: str) -> Topology:
        self.other_reads.append("topology")
        return super().topology(key)

    def terms(self, kind: TermKind) -> PodTerms:
        terms = super().terms(kind)
        if terms.empty_count is None:
            return replace(terms, on_count=lambda count: self.counts.append((count, count.sums.mark)))
        self.absent.add(kind)
        return terms


class Skipping(NamedTuple):
    """The names of the predicates and of the scores that skip a pod."""

    predicates: frozenset[str] = frozenset()
    scores: frozenset[str] = frozenset()


_NONE: Final = Skipping()


class _KnownSkips(Struct, eq=False):
    """The rules that skip a signature, valid while the recorded reads of the cluster are unchanged.

    `store` shows whether the kinds `absent` are still absent, as they were at `affinity_version`; `counts`
    have their marks.
    """

    epoch: Epoch
    skipping: Skipping
    store: TallyStore
    absent: tuple[TermKind, ...]
    counts: tuple[tuple[PodTermCount, object], ...]
    affinity_version: int

    def holds(self, epoch: Epoch) -> bool:
        if self.epoch != epoch:
            return False
        live = epoch.snapshot
        if self.affinity_version != live.affinity_version:
            for kind in self.absent:
                if self.store.has_terms(live, kind):
                    return False
            self.affinity_version = live.affinity_version
        for count, mark in self.counts:  # noqa: SIM110 - the hot path
            if not count.has_mark(mark):
                return False
        return True


class Skips:
    """The rules that skip a pod, of those rules of a profile whose answers cannot be kept."""

    def __init__(
        self,
        predicates: Iterable[PredicatePlugin | TightenedPlugin],
        scores: Iterable[ScorePlugin],
        signatures: Signatures,
    ) -> None:
        # Other conditions are not tracked.
        self._predicates = _tracked(each for each in predicates if isinstance(each, PredicatePlugin))
        self._scores = _tracked(scores)
        reads = [rule.applies_reads - _PODS for rule in self._predicates]
        reads += [rule.applies_reads - _PODS for rule in self._scores]
        dependencies = Dependencies.of(frozenset().union(*reads))
        assert dependencies is not None
        self._epochs = Epochs(dependencies.versions)
        self.signature = signatures.signature(dependencies)
        """Returns the signature of a pod for all conditions."""
        self._known: dict[Hashable, _KnownSkips] = {}
        # Recording costs as much as running the rules, so it begins with the third pod of a signature.
        self._seen_once = SeenSignatures()
        self._seen_twice = SeenSignatures()
        self._latest: tuple[PodInfo | None, LiveSnapshot | None, int, Skipping] = (None, None, 0, _NONE)
        self._lock = Lock()

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> Skipping:
        """Return the rules that skip a pod, none for the first two pods of a signature."""
        if snapshot.is_overlay or not (self._predicates or self._scores):
            return _NONE
        live = snapshot.live
        latest, cluster, version, found = self._latest
        if latest is pod and cluster is live and version == live.version:
            # Predicates and scores ask in one attempt.
            return found
        found = self._find(pod, live)
        self._latest = (pod, live, live.version, found)
        return found

    def _find(self, pod: PodInfo, live: LiveSnapshot) -> Skipping:
        signature, epoch = self.signature(pod), self._epochs[live.shared_state]
        known = self._known.get(signature)
        if known is None and not (self._seen_once.add(signature) and self._seen_twice.add(signature)):
            return _NONE
        if known is None or not known.holds(epoch):
            known = self._record(pod, epoch)
            with self._lock:
                if len(self._known) >= MAX_SIGNATURES:
                    self._known.clear()
                self._known[signature] = known
        return known.skipping

    def _record(self, pod: PodInfo, epoch: Epoch) -> _KnownSkips:
        absent: set[TermKind] = set()
        counts: list[tuple[PodTermCount, object]] = []

        def skipping(rules: Iterable[PredicatePlugin | ScorePlugin]) -> frozenset[str]:
            names: set[str] = set()
            for rule in rules:
                view = RecordingView(epoch.snapshot)
                if not rule.is_for(pod, view) and not view.other_reads:
                    names.add(rule.name)
                    absent.update(view.absent)
                    counts.extend(view.counts)
            return frozenset(names)

        found = Skipping(skipping(self._predicates), skipping(self._scores))
        live = epoch.snapshot
        return _KnownSkips(
            epoch, found, TallyStore.of(live), tuple(absent), tuple(counts), live.affinity_version
        )


def _tracked(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules whose answers cannot be kept, but whose conditions read nothing else than pods."""
    return tuple(
        each
        for each in rules
        if Dependencies.of(each.reads) is None and Dependencies.of(each.applies_reads - _PODS) is not None
    )

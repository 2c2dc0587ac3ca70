"""Rules that skip all pods of a signature, known without running them.

Most pods have no volumes and no affinity, and most clusters have no pods with anti-affinity. So the reads of
`applies when` are recorded at run time: facts that it did not read cannot change its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import PodTermCount, PodTerms, Topology
from kdsl.plan.memo.signature_memo import SignatureMemo
from kdsl.plan.reads.dependencies import Dependencies, Epoch
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.score import ScorePlugin

MAX_SKIP_BYTES: Final = 4 << 20
"""The most bytes of known skips: those of about a thousand signatures."""
_PODS: Final = frozenset({"cluster.pods", "cluster.static"})

Rule = TypeVar("Rule", PredicateRule, ScorePlugin)


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
    """The memo entry of one signature: the rules that skip it, valid while the recorded reads of the cluster
    are unchanged. A new signature has none.

    The kinds `absent` were absent at `affinity_version`; `counts` have their marks.
    """

    epoch: Epoch
    skipping: Skipping = _NONE
    absent: frozenset[TermKind] = frozenset()
    counts: tuple[tuple[PodTermCount, object], ...] = ()
    affinity_version: int = 0
    nbytes = 0

    def holds(self) -> bool:
        live = self.epoch.snapshot
        if self.affinity_version != live.affinity_version:
            store = TallyStore.of(live)
            for kind in self.absent:
                if store.has_terms(live, kind):
                    return False
            self.affinity_version = live.affinity_version
        for count, mark in self.counts:  # noqa: SIM110 - the hot path
            if not count.has_mark(mark):
                return False
        return True


class Skips:
    """The rules that skip a pod, of those rules of a profile whose answers cannot be kept."""

    def __init__(self, predicates: Iterable[PredicatePlugin], scores: Iterable[ScorePlugin]) -> None:
        # A predicate with tightenings is not tracked, nor are other conditions.
        self._predicates = _tracked(each.parts[0] for each in predicates if not each.is_tightened)
        self._scores = _tracked(scores)
        rules: tuple[PredicateRule | ScorePlugin, ...] = (*self._predicates, *self._scores)
        reads = [rule.applies_reads - _PODS for rule in rules]
        self._memo: SignatureMemo[_KnownSkips] = SignatureMemo(frozenset().union(*reads), most=MAX_SKIP_BYTES)
        self._latest: tuple[PodInfo | None, LiveSnapshot | None, int, Skipping] = (None, None, 0, _NONE)

    def __call__(self, pod: PodInfo, nodes: NodeSet) -> Skipping:
        """Return the rules that skip a pod, none for the first pod of a signature."""
        snapshot = nodes.snapshot
        if snapshot.is_overlay or not (self._predicates or self._scores):
            return _NONE
        live = snapshot.live
        latest, cluster, version, found = self._latest
        if latest is pod and cluster is live and version == live.version:
            # Predicates and scores ask in one attempt.
            return found
        known = self._memo.of(pod, nodes, self._new_entry)
        if not known.holds():
            self._record(pod, known)
        self._latest = (pod, live, live.version, known.skipping)
        return known.skipping

    def _new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _KnownSkips:
        entry = _KnownSkips(epoch)
        if not is_new:
            # This costs as much as running the rules.
            self._record(pod, entry)
        return entry

    def _record(self, pod: PodInfo, entry: _KnownSkips) -> None:
        """Find the rules that skip a pod, and the reads of the cluster on which that depends."""
        live = entry.epoch.snapshot
        absent: set[TermKind] = set()
        counts: list[tuple[PodTermCount, object]] = []

        def skipping(rules: Iterable[PredicateRule | ScorePlugin]) -> frozenset[str]:
            names: set[str] = set()
            for rule in rules:
                view = RecordingView(live)
                if not rule.is_for(pod, view) and not view.other_reads:
                    names.add(rule.name)
                    absent.update(view.absent)
                    counts.extend(view.counts)
                # A count refers to its view. If that kept the count, the collector would have to end a cycle.
                view.counts.clear()
            return frozenset(names)

        entry.skipping = Skipping(skipping(self._predicates), skipping(self._scores))
        entry.absent, entry.counts = frozenset(absent), tuple(counts)
        entry.affinity_version = live.affinity_version


def _tracked(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules whose answers cannot be kept, but whose conditions read nothing else than pods."""
    return tuple(
        each
        for each in rules
        if Dependencies.of(each.reads) is None and Dependencies.of(each.applies_reads - _PODS) is not None
    )

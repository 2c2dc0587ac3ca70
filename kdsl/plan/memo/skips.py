"""Rules that skip all pods of a signature, known without running them.

Most pods have no volumes and no affinity, and most clusters have no pods with anti-affinity. So the reads of
`applies when` are recorded at run time: facts that it did not read cannot change its result.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from threading import Lock
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import PodTermCount, PodTerms, Topology
from kdsl.plan.memo.seen_signatures import SeenSignatures
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.epochs import Epoch, Epochs
from kdsl.plan.reads.signatures import Signatures

MAX_SIGNATURES: Final = 1024
"""The most signatures that are kept; beyond that the table starts over."""
_PODS: Final = frozenset({"cluster.pods", "cluster.static"})


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


class Applies(Protocol):
    """Evaluates the conditions `applies when` of a rule."""

    def __call__(self, pod: PodInfo, view: ClusterView, /) -> bool: ...


class _KnownSkips(Struct, frozen=True, eq=False):
    """The rules that skip a signature, valid while the recorded reads of the cluster are unchanged.

    `store` shows whether the kinds `absent` are still absent; `counts` have their marks.
    """

    epoch: Epoch
    skipping: frozenset[str]
    store: TallyStore
    absent: tuple[TermKind, ...]
    counts: tuple[tuple[PodTermCount, object], ...]

    def holds(self, epoch: Epoch) -> bool:
        if self.epoch != epoch or (self.absent and self.store.has_terms(epoch.snapshot, self.absent)):
            return False
        for count, mark in self.counts:  # noqa: SIM110 - the hot path
            if not count.has_mark(mark):
                return False
        return True


class Skips:
    """The rules of a profile that skip a pod. `rules` holds the reads and the conditions by name."""

    def __init__(self, rules: Mapping[str, tuple[frozenset[str], Applies]], signatures: Signatures) -> None:
        each = {name: (Dependencies.of(reads - _PODS), applies) for name, (reads, applies) in rules.items()}
        # Other rules are not tracked.
        self._rules = {name: applies for name, (depends, applies) in each.items() if depends is not None}
        words = (reads - _PODS for name, (reads, _) in rules.items() if name in self._rules)
        dependencies = Dependencies.of(frozenset().union(*words))
        assert dependencies is not None
        self._epochs = Epochs(dependencies.versions)
        self.signature = signatures.signature(dependencies)
        """Returns the signature of a pod for all conditions."""
        self._known: dict[Hashable, _KnownSkips] = {}
        self._seen = SeenSignatures()
        self._lock = Lock()

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> frozenset[str]:
        """Return the rules that skip a pod; none if its signature is new."""
        if not self._rules or snapshot.is_overlay:
            return frozenset()
        signature, epoch = self.signature(pod), self._epochs.of(snapshot.live)
        known = self._known.get(signature)
        if known is None and not self._seen.add(signature):
            return frozenset()
        if known is None or not known.holds(epoch):
            known = self._record(pod, epoch)
            with self._lock:
                if len(self._known) >= MAX_SIGNATURES:
                    self._known.clear()
                self._known[signature] = known
        return known.skipping

    def _record(self, pod: PodInfo, epoch: Epoch) -> _KnownSkips:
        skipping: set[str] = set()
        absent: set[TermKind] = set()
        counts: list[tuple[PodTermCount, object]] = []
        for name, applies in self._rules.items():
            view = RecordingView(epoch.snapshot)
            if not applies(pod, view) and not view.other_reads:
                skipping.add(name)
                absent |= view.absent
                counts += view.counts
        store = TallyStore.of(epoch.snapshot)
        return _KnownSkips(epoch, frozenset(skipping), store, tuple(absent), tuple(counts))

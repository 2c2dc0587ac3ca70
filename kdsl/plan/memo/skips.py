"""Rules that have nothing to say of a kind of pod: known without asking them.

What a rule reads decides little here: most pods have no volumes and no affinity, and most clusters no pods
that want others away. So the conditions `applies when` are watched at work: what they did not ask for cannot
make a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Protocol

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.terms import TermKind
from kdsl.plan.counts.topology import PodTermCount, PodTerms, Topology
from kdsl.plan.memo.met import Met
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Likenesses

MAX_KINDS: Final = 1024
"""The most kinds of pods that opinions are kept of; beyond that they are formed anew."""
_PODS: Final = frozenset({"cluster.pods", "cluster.static"})


@dataclass(frozen=True, eq=False)
class WatchedView(ClusterView):
    """A view of the cluster that notes what is asked of its pods: `absent` are the kinds of terms that no pod
    was found to have, `counts` what terms came to, each with its mark; `asked` is not empty where anything
    else was.
    """

    absent: set[TermKind] = field(default_factory=set)
    counts: list[tuple[PodTermCount, object]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        self.asked.append("nodes")
        return ClusterView(self.snapshot).nodes

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        self.asked.append("pods")
        return ClusterView(self.snapshot).pods

    def topology(self, key: str) -> Topology:
        self.asked.append("topology")
        return super().topology(key)

    def terms(self, kind: TermKind) -> PodTerms:
        terms = super().terms(kind)
        if terms.nothing is None:
            return replace(terms, watch=lambda count: self.counts.append((count, count.sums.mark)))
        self.absent.add(kind)
        return terms


class Applies(Protocol):
    """Evaluates the conditions `applies when` of a rule."""

    def __call__(self, pod: PodInfo, view: ClusterView, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Opinion:
    """Who skips a kind of pod on a snapshot, as long as what was asked of the cluster is as it was.

    No pod has terms of the kinds `absent`, as `store` tells, and `counts` have their marks.
    """

    snapshot: Snapshot
    epoch: tuple[int, ...]
    skipping: frozenset[str]
    store: TallyStore
    absent: tuple[TermKind, ...]
    counts: tuple[tuple[PodTermCount, object], ...]

    def holds(self, snapshot: Snapshot, epoch: tuple[int, ...]) -> bool:
        if self.snapshot is not snapshot or self.epoch != epoch:
            return False
        for kind in self.absent:
            if self.store.has_terms(snapshot, kind):
                return False
        for count, mark in self.counts:  # noqa: SIM110 - the hot path
            if not count.is_still(mark):
                return False
        return True


class Skips:
    """Which of some rules skip a pod: by name, what their conditions read, and the conditions."""

    def __init__(self, rules: Mapping[str, tuple[frozenset[str], Applies]], likenesses: Likenesses) -> None:
        each = {name: (Dependencies.of(reads - _PODS), applies) for name, (reads, applies) in rules.items()}
        # Of others nothing can be known.
        self._rules = {name: applies for name, (depends, applies) in each.items() if depends is not None}
        words = (reads - _PODS for name, (reads, _) in rules.items() if name in self._rules)
        dependencies = Dependencies.of(frozenset().union(*words))
        assert dependencies is not None
        self._dependencies = dependencies
        self.signature = likenesses.signature(dependencies)
        """Returns a number that pods share of which the conditions see the same."""
        self._known: dict[int, _Opinion] = {}
        self._met = Met()
        self._lock = Lock()

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> frozenset[str]:
        """Return the rules that are known to skip a pod: none before its kind comes again."""
        if not self._rules or snapshot.is_overlay:
            return frozenset()
        kind, epoch = self.signature(pod), self._dependencies.epoch(snapshot)
        opinion = self._known.get(kind)
        if opinion is None and not self._met.meet(kind):
            return frozenset()
        if opinion is None or not opinion.holds(snapshot, epoch):
            opinion = self._ask(pod, snapshot, epoch)
            with self._lock:
                if len(self._known) >= MAX_KINDS:
                    self._known.clear()
                self._known[kind] = opinion
        return opinion.skipping

    def _ask(self, pod: PodInfo, snapshot: Snapshot, epoch: tuple[int, ...]) -> _Opinion:
        skipping: set[str] = set()
        absent: set[TermKind] = set()
        counts: list[tuple[PodTermCount, object]] = []
        for name, applies in self._rules.items():
            view = WatchedView(snapshot)
            if not applies(pod, view) and not view.asked:
                skipping.add(name)
                absent |= view.absent
                counts += view.counts
        store = TallyStore.of(snapshot)
        return _Opinion(snapshot, epoch, frozenset(skipping), store, tuple(absent), tuple(counts))

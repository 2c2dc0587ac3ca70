"""Rules that have nothing to say of a kind of pod: known without asking them.

What a rule reads decides little here: most pods have no volumes and no affinity, and most clusters no pods
that want others away. So the conditions `applies when` are watched at work: what they did not ask for cannot
make a difference.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Protocol

from kdsl.cluster.node import NodeInfo
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.plan.standing.dependencies import Dependencies
from kdsl.plan.tallies.store import TallyStore
from kdsl.plan.tallies.terms import TermKind
from kdsl.plan.tallies.topology import PodTerms, Topology
from kdsl.plan.views import ClusterView

MAX_KINDS: Final = 1024
"""The most kinds of pods that one rule knows its opinion of; beyond that it starts anew."""
_PODS: Final = frozenset({"cluster.pods", "cluster.static"})


@dataclass(frozen=True, eq=False)
class WatchedView(ClusterView):
    """A view of the cluster that notes what is asked of its pods: `absent` are the kinds of terms that no pod
    was found to have, `asked` is not empty where anything else was.
    """

    absent: set[TermKind] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[NodeInfo, ...]:
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
            self.asked.append(kind)
        else:
            self.absent.add(kind)
        return terms


class Applies(Protocol):
    """Evaluates the conditions `applies when` of a rule."""

    def __call__(self, pod: PodInfo, view: ClusterView, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Opinion:
    """Whether a rule skips a kind of pod, as long as no pod has terms of the kinds `absent`."""

    skips: bool
    absent: tuple[TermKind, ...]


class Skips:
    """Which pods one rule skips. `reads` is what its conditions read."""

    def __init__(self, reads: frozenset[str], applies: Applies) -> None:
        self._dependencies = Dependencies.of(reads - _PODS)
        self._applies = applies
        self._known: dict[Hashable, _Opinion] = {}
        self._lock = Lock()

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Tell whether the rule is known to skip a pod."""
        dependencies = self._dependencies
        if dependencies is None or snapshot.is_overlay:
            return False
        kind = (dependencies.signature(pod), dependencies.epoch(snapshot), id(snapshot))
        opinion = self._known.get(kind)
        if opinion is None or not _holds(opinion, snapshot):
            view = WatchedView(snapshot)
            skips = not self._applies(pod, view) and not view.asked
            opinion = _Opinion(skips, tuple(sorted(view.absent)) if skips else ())
            with self._lock:
                if len(self._known) >= MAX_KINDS:
                    self._known.clear()
                self._known[kind] = opinion
        return opinion.skips


def _holds(opinion: _Opinion, snapshot: Snapshot) -> bool:
    if not opinion.absent:
        return True
    store = TallyStore.of(snapshot)
    return not any(store.has_terms(snapshot, kind) for kind in opinion.absent)

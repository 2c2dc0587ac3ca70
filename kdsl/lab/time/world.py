"""The engine of live scheduling over a cluster in memory and a clock that events move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kdsl.app import Settings, build_engine, narrowed
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Condition
from kdsl.cycle.engine import Engine
from kdsl.profiles import profiles_in_use

EPOCH: Final = 24 * 3600 * 10**9
"""The clock's time at the start of a run: a day after the Unix epoch, since 0 is no time for Kubernetes."""
_OF_ONE_POD: Final = frozenset({"pod.name", "pod.uid", "pod.createdAt", "undeclared"})
"""Reads that differ between pods of one kind, or may."""


@dataclass(slots=True)
class TimedCluster:
    """A cluster, the engine that decides about it, and its clock. `evicted` are the victims since `take`."""

    cluster: ClusterCache
    engine: Engine
    clock: ManualClock
    evicted: list[PodInfo] = field(default_factory=list)

    @property
    def now(self) -> int:
        """The time in nanoseconds after the start."""
        return self.clock.now() - EPOCH

    def take_evicted(self) -> list[PodInfo]:
        found = list(self.evicted)
        self.evicted.clear()
        return found


class _Evictor:
    """Removes victims at once."""

    def __init__(self, cluster: ClusterCache, evicted: list[PodInfo]) -> None:
        self._cluster, self._evicted = cluster, evicted

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        self._cluster.remove_pod(victim.key)
        self._evicted.append(victim)


@contextmanager
def open_world(
    rules: RuleSet, settings: Settings, cluster: ClusterCache, *, evicts: bool
) -> Iterator[TimedCluster]:
    """Yield the world of a cluster whose pods select these schedulers.

    Unless it `evicts`, decisions may name victims that stay.
    """
    clock, evicted = ManualClock(EPOCH), list[PodInfo]()
    claims = MemoryClaims(cluster)
    claims.follow()
    with build_engine(
        rules,
        cluster,
        MemoryBinder(cluster, clock),
        clock,
        narrowed(rules, settings, ()),
        MemoryVolumes(cluster),
        _Evictor(cluster, evicted) if evicts else None,
        None,
        MemoryAnnotations(cluster),
        claims=claims,
    ) as engine:
        yield TimedCluster(cluster, engine, clock, evicted)


class KindNumbers:
    """Numbers for kinds of pods: those of one kind are equal in all but their names and times of creation."""

    def __init__(self) -> None:
        self._known: dict[PodInfo, int] = {}

    def of(self, pod: PodInfo) -> int:
        bare = pod.with_fields(name="", uid="", created_at=0)
        return self._known.setdefault(bare, len(self._known))


def decides_by_kind(rules: RuleSet, settings: Settings) -> bool:
    """Return whether pods of one kind are rejected alike: no predicate or preemption reads more of a pod."""
    return not any(_reads(profile) & _OF_ONE_POD for profile in profiles_in_use(rules, settings))


def _reads(profile: CheckedProfile) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for rule in profile.predicates:
        found = found.union(rule.reads, *(each.reads for each in rule.tightenings))
    return found | profile.preemption.reads if profile.preemption else found

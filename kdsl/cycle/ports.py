"""The protocols between the core and its surroundings: edges implement them, tests fake them, and the core
imports no edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kdsl.base.clock import Clock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.decision import Condition, Decision
from kdsl.hooks.context import Binder
from kdsl.hooks.faults import Fault

__all__ = ["AttemptState", "Binder", "Clock", "ClusterSource", "Evictor", "Router", "Tracer"]


class ClusterSource(Protocol):
    """The cluster as the cycle reads it. `kdsl.cluster.ClusterCache` is one."""

    def snapshot(self) -> Snapshot:
        """Return the present state; it may be read until the next call."""
        ...

    def pod(self, key: str) -> PodInfo | None:
        """Return the placed or assumed pod `namespace/name`."""
        ...

    def complete(self, pod: PodInfo) -> PodInfo:
        """Return the pod with the catalog's facts of its namespace added."""
        ...

    def observe(
        self, observer: Callable[[ClusterEvent], None], listens: Callable[[str], bool] = lambda pod: True
    ) -> None:
        """Call `observer` with every change from now on, including those of assumed pods.

        Events of a placed pod `namespace/name` for which `listens` is false may be left out.
        """
        ...

    def assume(self, pod: PodInfo, node_name: str) -> object:
        """Count the pod on the node from now on, before it is bound."""
        ...

    def is_assumed(self, key: str) -> bool:
        """Return whether the pod `namespace/name` is assumed and not yet seen on its node."""
        ...

    def forget(self, key: str) -> object:
        """Remove the assumed pod `namespace/name` again."""
        ...


class Evictor(Protocol):
    """Removes pods from the cluster: through the API server, or from a simulated cluster."""

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Give the placed pod `victim` the condition and delete it, to make room for `preemptor`."""
        ...


class Router(Protocol):
    """Selects the profile of a pod. `kdsl.plan.router.ProfileRouter` is one."""

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the name of the profile; None where the pod asks for another scheduler."""
        ...

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return the errors of selecting the pod's profile."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptState:
    """The engine's state that a decision depends on, beside its options: with it another engine decides the
    same.

    `start` is the start of the search, `number` the number of earlier attempts, `nominated_node` the pod's
    nomination ("" for none), `promised` the nominated pods with their nodes.
    """

    start: int
    number: int
    nominated_node: str
    promised: tuple[tuple[PodInfo, str], ...]


class Tracer(Protocol):
    """A listener to attempts: it cannot change a decision, and must not raise."""

    def begin(self, pod: PodInfo, state: AttemptState) -> None:
        """Note that an attempt begins."""

    def record(self, decision: Decision) -> None:
        """Note a decision."""

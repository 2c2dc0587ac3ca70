"""How the core meets the world: the edges implement these protocols, tests fake them, the core imports no
edge.
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

__all__ = ["AttemptState", "Binder", "Clock", "ClusterSource", "DecisionSink", "Evictor", "Router", "Tracer"]


class ClusterSource(Protocol):
    """The cluster as the cycle sees it. `kdsl.cluster.ClusterCache` is one."""

    def snapshot(self) -> Snapshot:
        """Return the present state; it is good for reading until the next call."""
        ...

    def pod(self, key: str) -> PodInfo | None:
        """Return the placed or assumed pod `namespace/name`."""
        ...

    def complete(self, pod: PodInfo) -> PodInfo:
        """Return the pod with what the catalog knows of its namespace."""
        ...

    def observe(
        self, observer: Callable[[ClusterEvent], None], listens: Callable[[str], bool] = lambda pod: True
    ) -> None:
        """Tell `observer` of every change from now on, assumed pods included.

        It need not be told of what happens to a placed pod `namespace/name` that it does not listen to.
        """
        ...

    def assume(self, pod: PodInfo, node_name: str) -> object:
        """Count the pod on the node from now on, before anybody has bound it."""
        ...

    def forget(self, key: str) -> object:
        """Take the assumed pod `namespace/name` back."""
        ...


class Evictor(Protocol):
    """Removes pods from the cluster: through the API server, or from a simulated cluster."""

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Give the placed pod `victim` the condition and delete it, to make room for `preemptor`."""
        ...


class Router(Protocol):
    """Tells which profile a pod gets. `kdsl.plan.router.ProfileRouter` is one."""

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the name of the profile; None where the pod asks for another scheduler."""
        ...

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return what went wrong where the profile was looked for."""
        ...


class DecisionSink(Protocol):
    """Somebody who listens: reports, metrics, traces. A sink cannot change a decision and must not raise."""

    def record(self, decision: Decision) -> None: ...


@dataclass(frozen=True, slots=True)
class AttemptState:
    """What of an engine a decision depends on, beside its options: with it another engine decides the same.

    `start` is where the search begins, `number` how many attempts there were before, `nominated_node` what
    the pod is promised ("" for none), `promised` the nominated pods with their nodes.
    """

    start: int
    number: int
    nominated_node: str
    promised: tuple[tuple[PodInfo, str], ...]


class Tracer(DecisionSink, Protocol):
    """A sink that is told of every attempt before it is made as well."""

    def begin(self, pod: PodInfo, state: AttemptState) -> None: ...

"""How the core meets the world: the edges implement these protocols, tests fake them, the core imports no
edge.
"""

from __future__ import annotations

from typing import Protocol

from kdsl.base.clock import Clock
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.cycle.decision import Decision
from kdsl.hooks.context import Binder

__all__ = ["Binder", "Clock", "ClusterSource", "DecisionSink", "Router"]


class ClusterSource(Protocol):
    """The cluster as the cycle sees it. `kdsl.cluster.ClusterCache` is one."""

    def snapshot(self) -> Snapshot:
        """Return the present state; it is good for reading until the next call."""
        ...

    def pod(self, key: str) -> PodInfo | None:
        """Return the placed or assumed pod `namespace/name`."""
        ...

    def assume(self, pod: PodInfo, node_name: str) -> object:
        """Count the pod on the node from now on, before anybody has bound it."""
        ...

    def forget(self, key: str) -> object:
        """Take the assumed pod `namespace/name` back."""
        ...


class Router(Protocol):
    """Tells which profile a pod gets. `kdsl.plan.router.ProfileRouter` is one."""

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the name of the profile; None where the pod asks for another scheduler."""
        ...


class DecisionSink(Protocol):
    """Somebody who listens: reports, metrics, traces. A sink cannot change a decision and must not raise."""

    def record(self, decision: Decision) -> None: ...

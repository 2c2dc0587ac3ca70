"""Bindings in memory: simulations, rule tests and explanations use them in place of the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdsl.base.clock import Clock
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.cache import ClusterCache


class MemoryBinder:
    """A `Binder` that changes `cluster` only: the pod counts as placed at once, and as started by a `clock`.
    `cluster` may be replaced by another one.
    """

    def __init__(self, cluster: ClusterCache, clock: Clock | None = None) -> None:
        self.cluster, self._clock = cluster, clock

    def bind(self, pod: PodInfo, node: str) -> None:
        """Accept the binding."""
        assumed = self.cluster.pod(pod.key)
        bound = assumed if assumed and assumed.node_name == node else pod.on(node)
        if self._clock is not None:
            bound = bound.with_fields(start_time=self._clock.now())
        self.cluster.add_pod(bound)

"""Annotations of pods kept in memory: what simulations and rule tests have in place of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.cache import ClusterCache


class MemoryAnnotations:
    """A `PodAnnotator` for which `cluster` is all there is. `cluster` may be set to another one."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Show the assumed pod with these annotations."""
        self.cluster.annotate(pod.key, annotations)

    def forget(self, pod: PodInfo) -> None:
        """Show the pod, if it is still assumed, as it came."""
        self.cluster.annotate(pod.key, pod.annotations)

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Add annotations to the assumed pod: binding keeps what it has."""
        assumed = self.cluster.pod(pod.key)
        if assumed is not None:
            self.cluster.annotate(pod.key, {**assumed.annotations, **annotations})

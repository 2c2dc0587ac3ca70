"""Annotations of pods kept in memory: simulations and rule tests use them in place of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.cache import ClusterCache


class MemoryAnnotations:
    """A `PodAnnotator` that changes `cluster` only. `cluster` may be replaced by another one."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Set the annotations of the assumed pod."""
        self.cluster.annotate(pod.key, annotations)

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Add annotations to the assumed pod: binding keeps its annotations."""
        assumed = self.cluster.pod(pod.key)
        if assumed is not None:
            self.cluster.annotate(pod.key, {**assumed.annotations, **annotations})

"""What a simulation runs on: nodes, the pods that run on them, and the pods that wait."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import KdslError
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.node import NodeFacts
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.read import read_objects
from kdsl.sim.openb import read_openb


@dataclass(frozen=True, slots=True)
class Workload:
    """Nodes and placed pods make the cluster; `pending` are the pods without a node, in order of arrival."""

    nodes: Sequence[NodeFacts]
    placed: Sequence[PodInfo]
    pending: Sequence[PodInfo]

    def cluster(self) -> ClusterCache:
        """Return a cache that holds the cluster."""
        cache = ClusterCache()
        for node in self.nodes:
            cache.add_node(node)
        for pod in self.placed:
            cache.add_pod(pod)
        return cache

    def find(self, name: str) -> PodInfo:
        """Return the pending pod called `name`, with or without its namespace.

        Raises KdslError where that is not one pod.
        """
        found = [pod for pod in self.pending if name in (pod.key, pod.name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise KdslError(f"several pods are called `{name}`: {', '.join(pod.key for pod in found)}")
        running = next((pod for pod in self.placed if name in (pod.key, pod.name)), None)
        if running is not None:
            raise KdslError(f"pod `{running.key}` already runs on `{running.node_name}`")
        raise KdslError(f"no pod called `{name}` in the input")


def read_kubernetes(cluster: Sequence[str], pods: Sequence[str]) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """Read Kubernetes objects; a pod is placed or pending by its own account, whichever path it came from."""
    read = read_objects([*cluster, *pods], sys.stdin.buffer)
    infos = [PodInfo.of(pod) for pod in read.pods]
    workload = Workload(
        nodes=[NodeFacts.of(node) for node in read.nodes],
        placed=[pod for pod in infos if pod.node_name],
        pending=[pod for pod in infos if not pod.node_name and not pod.is_finished],
    )
    return workload, read.diagnostics


def read_openb_trace(cluster: Sequence[str], pods: Sequence[str]) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """Read one node and one pod table of the openb trace; raises KdslError for any other number of them."""
    if len(cluster) != 1 or len(pods) != 1:
        raise KdslError("--format openb takes one --cluster table and one --pods table")
    trace = read_openb(cluster[0], pods[0])
    return Workload(trace.nodes, (), trace.pods), trace.diagnostics

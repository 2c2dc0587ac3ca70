"""Full clusters: every node is full of pods with low priority, so that each pending pod needs victims.

In `full` nodes are equal, and so are the pending pods. In `unlike-full` no two nodes and no two pods are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.bench import unlike

Json = dict[str, Any]
FULL, UNLIKE_FULL = SHAPES = "full", "unlike-full"
PRIORITY = 10_000
"""The priority of pending pods, above that of all pods that run."""
_PODS_PER_NODE = 5


def nodes(shape: str, count: int) -> Iterator[Json]:
    """Yield the nodes of a cluster."""
    return unlike.equal_nodes(count) if shape == FULL else unlike.unlike_nodes(count)


def running_pods(shape: str, cluster_size: int) -> Iterator[Json]:
    """Yield the pods that fill the nodes."""
    random = Random(shape)
    pods = _pods(shape, "bound", cluster_size * 8)
    for node in nodes(shape, cluster_size):
        room, count = node["status"]["allocatable"], _PODS_PER_NODE
        if shape == UNLIKE_FULL:
            count = random.randrange(3, 9)
        for _ in range(count):
            pod = next(pods)
            requests = {"cpu": f"{_millicores(room['cpu']) // count}m", "memory": "64Mi"}
            pod["spec"] = {
                "containers": [
                    {"name": "c", "image": "pause:3.10", "resources": {"requests": requests}},
                ],
                "priority": 0 if shape == FULL else random.randrange(10) * 100,
                "nodeName": node["metadata"]["name"],
            }
            yield pod


def pending_pods(shape: str, count: int) -> Iterator[Json]:
    """Yield the pods to schedule."""
    random = Random(f"pending {shape}")
    for pod in _pods(shape, "pending", count):
        container = pod["spec"]["containers"][0]
        cpu = 6_000 if shape == FULL else random.randrange(1_000, 9_000)
        container["resources"]["requests"]["cpu"] = f"{cpu}m"
        pod["spec"]["priority"] = PRIORITY
        yield pod


def _pods(shape: str, prefix: str, count: int) -> Iterator[Json]:
    return unlike.plain_pods(prefix, count) if shape == FULL else unlike.unlike_pods(prefix, count)


def _millicores(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1_000

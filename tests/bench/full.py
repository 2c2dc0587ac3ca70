"""Full clusters: every node is full of pods with low priority, so that each pending pod needs victims.

In `full` nodes are equal, and so are the pending pods. In `related-full` they also require spread, affinity or
anti-affinity, about pods that may be victims. In `unlike-full` no two nodes and no two pods are alike. In `stuck-full`
pending pods have the priority of the running ones, so that there are no victims.

In `nominated`, the pods are those of the shape `mixed` and have room, while 500 others are nominated for nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.bench import unlike

Json = dict[str, Any]
FULL, RELATED_FULL, UNLIKE_FULL, STUCK_FULL = SHAPES = "full", "related-full", "unlike-full", "stuck-full"
NOMINATED, NOMINATED_PODS = "nominated", 500
PRIORITY = 10_000
"""The priority of pending pods, above that of all pods that run."""
_PODS_PER_NODE = 5


def nodes(shape: str, count: int) -> Iterator[Json]:
    """Yield the nodes of a cluster."""
    return unlike.unlike_nodes(count) if shape == UNLIKE_FULL else unlike.equal_nodes(count)


def running_pods(shape: str, cluster_size: int) -> Iterator[Json]:
    """Yield the pods that fill the nodes."""
    random = Random(shape)
    pods = _pods(shape, "bound", cluster_size * 8)
    for node in nodes(shape, cluster_size):
        room, count = node["status"]["allocatable"], _PODS_PER_NODE
        if shape == UNLIKE_FULL:
            count = random.randrange(3, 9)
        for number in range(count):
            pod = next(pods)
            if shape == RELATED_FULL and number:
                pod["metadata"]["labels"]["app"] = f"app-{number}"
            requests = {"cpu": f"{_millicores(room['cpu']) // count}m", "memory": "64Mi"}
            pod["spec"] = {
                "containers": [
                    {"name": "c", "image": "pause:3.10", "resources": {"requests": requests}},
                ],
                "priority": random.randrange(10) * 100 if shape == UNLIKE_FULL else 0,
                "nodeName": node["metadata"]["name"],
            }
            yield pod


def pending_pods(shape: str, count: int) -> Iterator[Json]:
    """Yield the pods to schedule."""
    random = Random(f"pending {shape}")
    for pod in _pods(shape, "pending", count):
        container = pod["spec"]["containers"][0]
        cpu = random.randrange(1_000, 9_000) if shape == UNLIKE_FULL else 6_000
        container["resources"]["requests"]["cpu"] = f"{cpu}m"
        pod["spec"]["priority"] = 0 if shape == STUCK_FULL else PRIORITY
        if shape == RELATED_FULL:
            pod["spec"] |= _relation(random)
        yield pod


def _relation(random: Random) -> Json:
    """Return a required constraint or term about the pods of an app; pods of the last one do not exist."""
    app = random.choice(["web", *(f"app-{number}" for number in range(1, _PODS_PER_NODE + 1))])
    about: Json = {"labelSelector": {"matchLabels": {"app": app}}}
    about["topologyKey"] = random.choice([unlike.ZONE, unlike.HOSTNAME])
    kind = random.choice(["podAffinity", "podAntiAffinity", ""])
    if kind:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [about]}}}
    return {"topologySpreadConstraints": [{**about, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


def _pods(shape: str, prefix: str, count: int) -> Iterator[Json]:
    return unlike.unlike_pods(prefix, count) if shape == UNLIKE_FULL else unlike.plain_pods(prefix, count)


def _millicores(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1_000

"""The clusters and pods that benchmarks schedule, by shape.

Nodes have 32 cpu, 256 GiB and room for 110 pods, in 3 zones and 10 pools. Pods ask for 100m and 500 MiB. What a
shape adds is the constraint that scheduler_perf gives to its workload of that name; nodes of `gpu-sharing` have 8
cards of 80 GiB, which up to 10 pods share, and its pods ask for a part of one, of 10 sizes. In `unlike-gpu-sharing` no
two pods ask for the same part. `unlike-cards` and those by vendor are in `tests.bench.unlike_cards`. In `busy-cards`
bound pods have parts of cards, so that hardly two cards are alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from tests.bench import features, full, unlike, unlike_cards

Json = dict[str, Any]

ZONE, HOSTNAME, POOL = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "pool"
ZONES, POOLS = 3, 10
JOB_LABELS, UNLIKE_NODES, UNLIKE_PODS, UNLIKE = "job-labels", "unlike-nodes", "unlike-pods", "unlike"
_UNLIKE_PODS, _UNLIKE_NODES = (UNLIKE_PODS, UNLIKE), (UNLIKE_NODES, UNLIKE)
GPU_SHARING, UNLIKE_GPU_SHARING, UNLIKE_CARDS, BUSY_CARDS = GPU_SHAPES = (
    "gpu-sharing",
    "unlike-gpu-sharing",
    "unlike-cards",
    "busy-cards",
)
_UNLIKE_CARDS = (UNLIKE_CARDS, BUSY_CARDS, *unlike_cards.CROWDED)
CARDS = 8


def nodes(shape: str, count: int) -> Iterator[Json]:
    """Yield the nodes of a cluster."""
    if shape in full.SHAPES:
        yield from full.nodes(shape, count)
        return
    if shape in _UNLIKE_NODES or shape in features.FEATURES:
        yield from unlike.unlike_nodes(count)
        return
    if shape in _UNLIKE_PODS:
        yield from unlike.equal_nodes(count)
        return
    room = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    for number in range(count):
        name = f"node-{number}"
        labels = {HOSTNAME: name, ZONE: f"zone-{number % ZONES}", POOL: f"pool-{number % POOLS}"}
        annotations = _registered(shape, number, name)
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "status": {"capacity": room, "allocatable": room},
        }


def _registered(shape: str, number: int, name: str) -> dict[str, str]:
    """Return the annotations in which a node registers its cards."""
    if shape in unlike_cards.VENDORS:
        return unlike_cards.VENDORS[shape].registered(number)
    cards = unlike_cards.cards(number) if shape in _UNLIKE_CARDS else _cards(name)
    return {unlike_cards.REGISTER: cards} if shape in (*GPU_SHAPES, *_UNLIKE_CARDS) else {}


def bound_pods(shape: str, count: int, cluster_size: int) -> Iterator[Json]:
    """Yield the pods that run already, spread evenly; in full clusters as many as there is room for."""
    if shape in full.SHAPES:
        yield from full.running_pods(shape, cluster_size)
        return
    if shape == unlike_cards.FULL_CARDS:
        yield from unlike_cards.filling_pods(cluster_size)
        return
    for number, pod in enumerate(_pods(shape, "bound", count)):
        node = number * cluster_size // count
        pod["spec"]["nodeName"] = f"node-{node}"
        if shape in (BUSY_CARDS, unlike_cards.NOMINATED_CARDS, unlike_cards.BUSY_CONTAINERS):
            pod["metadata"]["annotations"] = unlike_cards.allocated(number, node)
        yield pod


def pending_pods(shape: str, count: int) -> Iterator[Json]:
    """Yield the pods to schedule."""
    return full.pending_pods(shape, count) if shape in full.SHAPES else _pods(shape, "pending", count)


def nominated_pods(shape: str, cluster_size: int) -> Iterator[Json]:
    """Yield pending pods of high priority that are nominated for nodes, spread evenly."""
    pods: Iterator[Json] = iter(())
    if shape == full.NOMINATED:
        pods = unlike.plain_pods("nominated", full.NOMINATED_PODS)
    elif shape == unlike_cards.NOMINATED_CARDS:
        pods = _pods(BUSY_CARDS, "nominated", full.NOMINATED_PODS)
    for number, pod in enumerate(pods):
        pod["spec"]["priority"] = full.PRIORITY
        pod["status"] = {"nominatedNodeName": f"node-{number * cluster_size // full.NOMINATED_PODS}"}
        yield pod


def _pods(shape: str, prefix: str, count: int) -> Iterator[Json]:
    if shape in features.FEATURES:
        return features.pods(shape, prefix, count)
    if shape in _UNLIKE_PODS:
        return unlike.unlike_pods(prefix, count)
    if shape == UNLIKE_NODES:
        return unlike.plain_pods(prefix, count)
    if shape == JOB_LABELS:
        return unlike.job_labels(_repeated_pods("mixed", prefix, count))
    return _repeated_pods(shape, prefix, count)


def _repeated_pods(shape: str, prefix: str, count: int) -> Iterator[Json]:
    parts = SHAPES.get("mixed" if shape == full.NOMINATED else shape, (_plain,))
    for number, part in enumerate(islice(_repeated(parts), count)):
        name = f"{prefix}-{number}"
        resources: Json = {"requests": {"cpu": "100m", "memory": "500Mi"}}
        if shape in (GPU_SHARING, UNLIKE_GPU_SHARING):
            is_unlike = shape == UNLIKE_GPU_SHARING
            memory = 2_000 + 7 * number if is_unlike else 2_000 * (1 + number % 10)
            resources["limits"] = {
                "nvidia.com/gpu": "1",
                "nvidia.com/gpumem": str(memory),
                "nvidia.com/gpucores": str(number % 30 if is_unlike else 10),
            }
        annotations: dict[str, str] = {}
        if shape in _UNLIKE_CARDS:
            resources["limits"], annotations = unlike_cards.limits(number), unlike_cards.wanted(number)
        if shape in unlike_cards.VENDORS:
            resources["limits"], annotations = unlike_cards.VENDORS[shape].pod(number)
        priority = full.PRIORITY if shape == unlike_cards.FULL_CARDS else 0
        containers = [{"name": "pause", "image": "pause:3.10", "resources": resources}]
        if shape == unlike_cards.BUSY_CONTAINERS:
            containers += unlike_cards.more_containers(number)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "bench",
                "uid": name,
                "labels": {"color": _color(part)},
                "annotations": annotations,
            },
            "spec": {"containers": containers, "priority": priority, **part()},
        }


def _color(part: Callable[[], Json]) -> str:
    return part.__name__.strip("_").replace("_", "-")


def _repeated(parts: tuple[Callable[[], Json], ...]) -> Iterator[Callable[[], Json]]:
    while True:
        yield from parts


def _selects(color: str) -> Json:
    return {"matchLabels": {"color": color}}


def _cards(node: str) -> str:
    """Return what the device plugin of a node registers."""
    card = {
        "count": 10,
        "devmem": 81_920,
        "devcore": 100,
        "type": "NVIDIA-A100",
        "mode": "hami-core",
        "health": True,
    }
    cards = [
        {"id": f"GPU-{node}-{index}", "index": index, "numa": index // 4, **card} for index in range(CARDS)
    ]
    return json.dumps(cards)


def _plain() -> Json:
    return {}


def _node_affinity() -> Json:
    wanted = {"key": POOL, "operator": "In", "values": ["pool-1", "pool-2", "pool-3"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _spread() -> Json:
    return _constraint("DoNotSchedule", "spread")


def _preferred_spread() -> Json:
    return _constraint("ScheduleAnyway", "preferred-spread")


def _constraint(otherwise: str, color: str) -> Json:
    one = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": otherwise,
        "labelSelector": _selects(color),
    }
    return {"topologySpreadConstraints": [one]}


def _anti_affinity() -> Json:
    return _required("podAntiAffinity", HOSTNAME, "anti-affinity")


def _affinity() -> Json:
    return _required("podAffinity", ZONE, "affinity")


def _required(kind: str, key: str, color: str) -> Json:
    term = {"topologyKey": key, "labelSelector": _selects(color)}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _preferred_affinity() -> Json:
    term = {
        "weight": 1,
        "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": _selects("preferred-affinity")},
    }
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


SHAPES: Mapping[str, tuple[Callable[[], Json], ...]] = {
    "basic": (_plain,),
    "node-affinity": (_node_affinity,),
    "spread": (_spread,),
    "preferred-spread": (_preferred_spread,),
    "anti-affinity": (_anti_affinity,),
    "affinity": (_affinity,),
    "preferred-affinity": (_preferred_affinity,),
    GPU_SHARING: (_plain,),
    UNLIKE_GPU_SHARING: (_plain,),
    UNLIKE_CARDS: (_plain,),
    BUSY_CARDS: (_plain,),
    "mixed": (
        _plain,
        _node_affinity,
        _spread,
        _preferred_spread,
        _anti_affinity,
        _affinity,
        _preferred_affinity,
    ),
}
"""What the pods of each shape ask for; several take turns."""

NAMES = (*SHAPES, JOB_LABELS, UNLIKE_NODES, UNLIKE_PODS, UNLIKE)
"""The shapes of the table in docs/performance.md; those of `tests.bench.unlike` come last."""

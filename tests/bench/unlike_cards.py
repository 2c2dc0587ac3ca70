"""Nodes with cards, and pods that differ in what they ask of them.

`unlike-cards` has NVIDIA cards of six models, and pods that differ in amounts, models, names of cards and policies. In
`full-cards` a bound pod has most of each card, so that each pending pod needs victims; in `nominated-cards` 500 pods
are nominated for nodes; in `busy-containers` two or three containers of each pod request cards. The shapes in `VENDORS` have cards of one vendor and pods that differ in amounts; in
`unlike-models` no two nodes have equal cards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Json = dict[str, Any]

NODES = 1_000
"""Pods name cards of so many nodes."""
FULL_CARDS, NOMINATED_CARDS, BUSY_CONTAINERS = CROWDED = "full-cards", "nominated-cards", "busy-containers"
REGISTER = "hami.io/node-nvidia-register"
_MODELS = (
    ("NVIDIA-A100", 81_920), ("NVIDIA-V100", 32_768), ("NVIDIA-T4", 15_360),
    ("NVIDIA-H100", 81_559), ("NVIDIA-L40S", 46_068), ("NVIDIA-A10", 23_028),
)  # fmt: skip


def cards(number: int) -> str:
    """Return the registered cards of a node."""
    random = Random(f"cards {number}")
    model, memory = random.choice(_MODELS)
    rows = [
        {
            "id": _name(number, place),
            "index": place,
            "numa": place // 4,
            "count": 10,
            "devmem": memory,
            "devcore": 100,
            "type": model,
            "mode": "hami-core",
            "health": random.random() > 0.02,
        }
        for place in range(random.choice([2, 4, 8]))
    ]
    return json.dumps(rows)


def allocated(number: int, node: int) -> dict[str, str]:
    """Return the annotations of a bound pod with a part of one card of a node."""
    random = Random(f"allocated {number}")
    card = random.choice(json.loads(cards(node)))
    memory, cores = random.randrange(200, card["devmem"] // 8), random.randrange(1, 12)
    return {"hami.io/vgpu-devices-allocated": f"{card['id']},NVIDIA,{memory},{cores}:;"}


def filling_pods(cluster_size: int) -> Iterator[Json]:
    """Yield a pod for each card, with all but a small part of it."""
    random = Random(FULL_CARDS)
    for node in range(cluster_size):
        for place, card in enumerate(json.loads(cards(node))):
            memory, name = card["devmem"] - random.randrange(100, 900), f"bound-{node}-{place}"
            record = {"hami.io/vgpu-devices-allocated": f"{card['id']},NVIDIA,{memory},30:;"}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "bench", "uid": name, "annotations": record},
                "spec": {
                    "nodeName": f"node-{node}",
                    "priority": random.randrange(5),
                    "containers": [{"name": "pause", "image": "pause:3.10"}],
                },
            }


def limits(number: int) -> dict[str, str]:
    """Return the limits of a container."""
    random = Random(f"limits {number}")
    found = {"nvidia.com/gpu": str(random.choice([1, 1, 1, 2, 4]))}
    if random.random() < 0.7:
        found["nvidia.com/gpumem"] = str(random.randrange(500, 30_000))
    else:
        found["nvidia.com/gpumem-percentage"] = str(random.randrange(3, 100))
    if random.random() < 0.7:
        found["nvidia.com/gpucores"] = str(random.randrange(1, 100))
    return found


def more_containers(number: int) -> list[Json]:
    """Return one or two containers with limits of their own."""
    return [
        {
            "name": f"more-{place}",
            "image": "pause:3.10",
            "resources": {"limits": limits(number + place * 10_000)},
        }
        for place in range(1, 2 + number % 2)
    ]


def wanted(number: int) -> dict[str, str]:
    """Return the annotations of a pod: the models and cards that it wants or avoids, and its policies."""
    random = Random(f"annotations {number}")
    models = [model for model, _ in _MODELS]
    kind, found = random.random(), dict[str, str]()
    if kind < 0.3:
        found["nvidia.com/use-gputype"] = ",".join(random.sample(models, 2))
    elif kind < 0.45:
        found["nvidia.com/nouse-gputype"] = random.choice(models)
    elif kind < 0.55:
        found["nvidia.com/use-gpuuuid"] = ",".join(_some(random, 20))
    elif kind < 0.65:
        found["nvidia.com/nouse-gpuuuid"] = ",".join(_some(random, 5))
    if random.random() < 0.2:
        found["hami.io/node-scheduler-policy"] = random.choice(["spread", "binpack"])
    if random.random() < 0.2:
        found["hami.io/gpu-scheduler-policy"] = random.choice(["spread", "binpack", "mutex"])
    return found


def _some(random: Random, count: int) -> list[str]:
    return [_name(random.randrange(NODES), random.randrange(2)) for _ in range(count)]


def _name(node: int, place: int) -> str:
    return f"GPU-{node}-{place}"


@dataclass(frozen=True, slots=True)
class Vendor:
    """The annotations of a node by its number, and the random limits and annotations of a pod."""

    registered: Callable[[int], dict[str, str]]
    limits: Callable[[Random], dict[str, int]]
    annotations: Callable[[Random], dict[str, str]] = lambda random: {}

    def pod(self, number: int) -> tuple[dict[str, str], dict[str, str]]:
        """Return the limits of a pod's container, and the annotations of the pod."""
        random = Random(f"vendor {number}")
        limits = {name: str(amount) for name, amount in self.limits(random).items()}
        return limits, self.annotations(random)


def _enflame(number: int) -> dict[str, str]:
    devices = [{"index": str(place), "minor": str(place), "capacity": 6} for place in range(8)]
    profiles = {f"{part}g.{12 * part}gb": str(place) for place, part in enumerate([1, 2, 3, 6])}
    return {"enflame.com/gcu-drs-capacity": json.dumps({"devices": devices, "profiles": profiles})}


def _ascend(number: int) -> dict[str, str]:
    card = {"count": 10, "devmem": 65_536, "devcore": 100, "type": "Ascend910B3", "health": True}
    rows = [
        {"id": f"NPU-{number}-{place}", "index": place, "custominfo": {"NetworkID": place // 4}, **card}
        for place in range(8)
    ]
    return {"hami.io/node-register-Ascend910B3": json.dumps(rows), "hami-vnpu-core": "true"}


def _metax(number: int) -> dict[str, str]:
    card = {"totalDevCount": 10, "totalVRam": 65_536, "totalCompute": 100, "healthy": True}
    rows = [
        {"uuid": f"MX-{number}-{place}", "qosPolicy": "best-effort", "linkZone": 1 + place // 4, **card}
        for place in range(8)
    ]
    return {"metax-tech.com/node-gpu-devices": json.dumps(rows)}


def _mig(number: int) -> dict[str, str]:
    profiles = [
        {
            "name": f"{part}g.{size * 5}gb",
            "memoryMB": size * 4_864,
            "core": 14 * part,
            "sliceCount": part,
            "placements": [{"start": start, "size": size} for start in starts],
        }
        for part, size, starts in ((1, 1, range(7)), (2, 2, (0, 2, 4)), (3, 4, (0, 4)), (7, 8, (0,)))
    ]
    card = {
        "count": 7,
        "devmem": 40_960,
        "devcore": 100,
        "type": "NVIDIA-A100",
        "mode": "mig",
        "health": True,
    }
    rows = [
        {"id": f"MIG-{number}-{place}", "index": place, "numa": place // 4, "migProfiles": profiles, **card}
        for place in range(8)
    ]
    return {REGISTER: json.dumps(rows)}


def _models(number: int) -> dict[str, str]:
    random = Random(f"models {number}")
    rows = [
        {
            "id": _name(number, place),
            "index": place,
            "numa": place // 4,
            "count": random.randrange(5, 20),
            "devmem": random.randrange(20_000, 90_000),
            "devcore": 100,
            "type": random.choice(_MODELS)[0],
            "mode": "hami-core",
            "health": True,
        }
        for place in range(8)
    ]
    return {REGISTER: json.dumps(rows)}


def _parts_of_gpus(random: Random) -> dict[str, int]:
    memory, cores = random.randrange(500, 30_000), random.randrange(1, 60)
    return {
        "nvidia.com/gpu": random.choice([1, 1, 2]),
        "nvidia.com/gpumem": memory,
        "nvidia.com/gpucores": cores,
    }


VENDORS: Mapping[str, Vendor] = {
    "unlike-enflame": Vendor(
        _enflame,
        lambda random: {
            "enflame.com/gcu-memory": random.randrange(200, 40_000),
            "enflame.com/gcu-core": random.randrange(1, 60),
        },
    ),
    "unlike-ascend": Vendor(
        _ascend,
        lambda random: {
            "huawei.com/Ascend910B3": random.choice([1, 1, 2]),
            "huawei.com/Ascend910B3-memory": random.randrange(500, 30_000),
            "huawei.com/Ascend910B3-core": random.randrange(1, 60),
        },
        lambda random: {"huawei.com/vnpu-mode": "hami-core"},
    ),
    "unlike-metax": Vendor(
        _metax,
        lambda random: {
            "metax-tech.com/sgpu": 1,
            "metax-tech.com/vmemory": random.randrange(1, 30),
            "metax-tech.com/vcore": random.randrange(1, 60),
        },
        lambda random: random.choice(
            [{}, {"metax-tech.com/sgpu-app-class": random.choice(["online", "offline"])}]
        ),
    ),
    "unlike-mig": Vendor(
        _mig, lambda random: {"nvidia.com/gpu": 1, "nvidia.com/gpumem": random.randrange(500, 20_000)}
    ),
    "unlike-models": Vendor(
        _models,
        _parts_of_gpus,
        lambda random: {"nvidia.com/use-gputype": ",".join(random.sample([each for each, _ in _MODELS], 2))},
    ),
}
SHAPES = (*CROWDED, *VENDORS)

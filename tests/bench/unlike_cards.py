"""Nodes with cards of six models, and pods that differ in amounts, models, names of cards and policies."""

from __future__ import annotations

import json
from random import Random
from typing import Any

Json = dict[str, Any]

NODES = 1_000
"""Pods name cards of so many nodes."""
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


def annotations(number: int) -> dict[str, str]:
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

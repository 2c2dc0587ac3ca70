"""The policies for nodes and cards: defaults, and the annotations of pods that override them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.devices.codec import shown

NODE_POLICY: Final = "hami.io/node-scheduler-policy"
CARD_POLICY: Final = "hami.io/gpu-scheduler-policy"
WEIGHTS: Final = "hami.io/device-scoring-weights"
NUMA_BIND: Final = "nvidia.com/numa-bind"

SPREAD: Final = "spread"
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_WEIGHT: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
"""Larger weights overflow an int64."""
_DIMENSIONS: Final = ("slot", "core", "memory")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of slots, compute and memory in the fill level of a card."""

    slot: int = 1
    core: int = 1
    memory: int = 1


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one pod. `node`, `device` and `numa_bind` are the fields of the `DevicePolicy` view."""

    node: str = "binpack"
    device: str = "spread"
    numa_bind: bool = False
    weights: Weights = Weights()

    @property
    def spreads_nodes(self) -> bool:
        """Return whether the node with the lowest score is best; any other word than `spread` packs."""
        return self.node == SPREAD

    def of(self, annotations: Mapping[str, str]) -> Policy:
        """Return the policy of a pod, with this one as the default; ValueError for unreadable weights."""
        return Policy(
            annotations.get(NODE_POLICY, self.node),
            annotations.get(CARD_POLICY, self.device),
            annotations.get(NUMA_BIND, "") in _TRUE,
            read_weights(annotations[WEIGHTS]) if WEIGHTS in annotations else self.weights,
        )


def read_weights(text: str) -> Weights:
    """Read `slot=1,core=2,memory=3`: each of the three once, whole numbers, not all zero; else ValueError."""
    found: dict[str, int] = {}
    for entry in text.split(","):
        name, _, number = (part.strip() for part in entry.partition("="))
        if name not in _DIMENSIONS or name in found or not _WEIGHT.fullmatch(number):
            raise ValueError(f"annotation {WEIGHTS}: `{shown(text)}` is not like `slot=1,core=1,memory=1`")
        found[name] = int(number)
    if len(found) < len(_DIMENSIONS) or not any(found.values()):
        raise ValueError(f"annotation {WEIGHTS}: `{shown(text)}` needs slot, core and memory, not all zero")
    return Weights(**found)

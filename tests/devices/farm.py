"""A small cluster with cards, run by the engine: what the tests of this folder share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from kdsl.app import Settings, build_engine, check_rules
from kdsl.base.clock import ManualClock
from kdsl.check.model import RuleSet
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.memory_annotations import MemoryAnnotations
from kdsl.cluster.memory_volumes import MemoryVolumes
from kdsl.cluster.node import NodeFacts
from kdsl.cluster.objects import Node, Pod
from kdsl.cluster.pod import PodInfo
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.hooks.status import Code, Status
from kdsl.sim.run import SimulatedBinder, SimulatedEvictor

RECORD = "hami.io/vgpu-devices-allocated"

RULES = """kdsl 1
package farm
import devices.nvidia
import kubernetes.v1_36 as kubernetes

profile pack extends kubernetes.default {
  scheduler "pack"
  devices nvidia.Nvidia
  set Devices.cardPolicy = "binpack"
  set Devices.weight = 1000
}

profile spread extends pack {
  scheduler "spread"
  set Devices.nodePolicy = "spread"
  set Devices.cardPolicy = "spread"
}
"""


def rules(folder: Path, text: str = RULES) -> RuleSet:
    """Check rule text beside the shipped devices."""
    (folder / "farm.kdsl").write_text(text)
    checked = check_rules([folder])
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def node(name: str, cards: int = 2, memory: int = 1000, slots: int = 4, **annotations: str) -> NodeFacts:
    """Return a node that registers NVIDIA cards `NAME-g0`, `NAME-g1` and so on."""
    rows = [
        {
            "id": f"{name}-g{at}", "index": at, "count": slots, "devmem": memory, "devcore": 100,
            "type": "NVIDIA", "mode": "hami-core", "health": True,
        }
        for at in range(cards)
    ]  # fmt: skip
    register = {"hami.io/node-nvidia-register": json.dumps(rows)} if cards else {}
    written: dict[str, Any] = {
        "metadata": {"name": name, "annotations": {**register, **annotations}},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }
    return NodeFacts.of(msgspec.convert(written, Node, strict=False))


def pod(
    name: str,
    gpus: int = 1,
    memory: int = 100,
    cores: int = 10,
    priority: int = 0,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "default",
    **container: Any,
) -> PodInfo:
    """Return a pod with one container that asks for parts of cards."""
    limits = {"nvidia.com/gpu": gpus, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores}
    written: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": name,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "priority": priority,
            "schedulerName": "any",
            "containers": [{"name": "main", "resources": {"limits": limits}, **container}],
        },
    }
    return PodInfo.of(msgspec.convert(written, Pod, strict=False))


class Moody(SimulatedBinder):
    """Takes bindings while it is in the mood for it."""

    refuses = False

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return Status(Code.ERROR, ("not now",)) if self.refuses else super().bind(pod, node)


class Farm:
    """A cluster and an engine over it; a restart makes another engine and forgets all but the pods."""

    def __init__(self, found: RuleSet, profile: str, *nodes: NodeFacts) -> None:
        self.rules, self.profile = found, profile
        self.cluster = ClusterCache()
        for each in nodes:
            self.cluster.add_node(each)
        self.binder = Moody(self.cluster)
        self.engine = self._engine()

    def _engine(self) -> Engine:
        return build_engine(
            self.rules,
            self.cluster,
            self.binder,
            ManualClock(1_700_000_000 * 10**9),
            Settings(profile=self.profile, detail=Detail.FULL),
            MemoryVolumes(self.cluster),
            SimulatedEvictor(self.cluster),
            annotator=MemoryAnnotations(self.cluster),
        )

    def restart(self) -> None:
        self.engine = self._engine()

    def place(self, wanted: PodInfo) -> Decision:
        return self.engine.schedule_one(wanted)

    def fail(self, wanted: PodInfo) -> Decision:
        """Let the binding of a pod fail once it has its cards."""
        self.binder.refuses = True
        try:
            return self.engine.schedule_one(wanted)
        finally:
            self.binder.refuses = False

    def annotations(self, name: str) -> Mapping[str, str]:
        placed = self.cluster.pod(name if "/" in name else f"default/{name}")
        assert placed is not None
        return placed.annotations

    def record(self, name: str) -> str:
        """Return what a placed pod has of cards."""
        return self.annotations(name).get(RECORD, "")

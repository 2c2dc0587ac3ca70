"""A small cluster with cards, run by the engine: what the tests of this folder share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kdsl.app import Settings, build_engine, check_rules
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.hooks.status import Code, Status
from kdsl.plan.devices import answers
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.placing import place
from kdsl.sim.run import SimulatedEvictor

Json = dict[str, Any]
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

/// Fills what pods leave of cards in MIG mode.
device Filled extends nvidia.Nvidia {
  set sharesInstances = true
}

profile fill extends pack {
  scheduler "fill"
  devices Filled
}
"""

MIG_PLACES = {"1g": range(7), "2g": (0, 2, 4), "3g": (0, 4), "7g": (0,)}
"""Where instances of each profile may be on a card in MIG mode."""
MIG_SIZES = {"1g": 1, "2g": 2, "3g": 4, "7g": 8}
"""How many eighths of such a card an instance takes."""


def mig_profiles(memory: int) -> list[Json]:
    """Return the profiles of a card with so much memory, as its device plugin registers them."""
    return [
        {
            "name": name,
            "memoryMB": memory * MIG_SIZES[name] // 8,
            "core": 14 * int(name[0]),
            "sliceCount": int(name[0]),
            "placements": [{"start": start, "size": MIG_SIZES[name]} for start in places],
        }
        for name, places in MIG_PLACES.items()
    ]


def rules(folder: Path, text: str = RULES) -> RuleSet:
    """Check rule text beside the shipped devices."""
    (folder / "farm.kdsl").write_text(text)
    checked = check_rules([folder])
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def node(
    name: str, cards: int = 2, memory: int = 1000, slots: int = 4, is_mig: bool = False, **annotations: str
) -> NodeFacts:
    """Return a node that registers NVIDIA cards `NAME-g0`, `NAME-g1` and so on, perhaps in MIG mode."""
    mode: Json = {"mode": "mig", "migProfiles": mig_profiles(memory)} if is_mig else {"mode": "hami-core"}
    rows = [
        {
            "id": f"{name}-g{at}", "index": at, "count": slots, "devmem": memory, "devcore": 100,
            "type": "NVIDIA", "health": True, **mode,
        }
        for at in range(cards)
    ]  # fmt: skip
    register = {"hami.io/node-nvidia-register": json.dumps(rows)} if cards else {}
    written: dict[str, Any] = {
        "metadata": {"name": name, "annotations": {**register, **annotations}},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
    }
    return NodeFacts.of(msgspec.convert(written, Node, strict=False))


def annotated(facts: NodeFacts, annotations: Mapping[str, str]) -> NodeFacts:
    """Return a node with these annotations as well."""
    return replace(facts, annotations=FrozenMap({**facts.annotations, **annotations}))


def pod(
    name: str,
    gpus: int = 1,
    memory: int = 100,
    cores: int = 10,
    priority: int = 0,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "default",
    containers: int = 1,
    **container: Any,
) -> PodInfo:
    """Return a pod with containers that each ask for parts of cards."""
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
            "containers": [
                {"name": f"main{at or ''}", "resources": {"limits": limits}, **container}
                for at in range(containers)
            ],
        },
    }
    return PodInfo.of(msgspec.convert(written, Pod, strict=False))


class Moody(MemoryBinder):
    """Takes bindings while it is in the mood for it."""

    refuses = False

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return Status(Code.ERROR, ("not now",)) if self.refuses else super().bind(pod, node)


class ApiNodes:
    """Annotations of nodes, in a cluster that is all there is.

    `refusals` are why the next writes fail; an empty one lets a write pass.
    """

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster
        self.refusals: list[str] = []

    def facts(self, name: str) -> NodeFacts | None:
        found = self.cluster.snapshot().node(name)
        return None if found is None else found.facts

    def read(self, node: str) -> Mapping[str, str] | None:
        facts = self.facts(node)
        return None if facts is None else facts.annotations

    def write(self, node: str, key: str, value: str, was: str) -> Status | None:
        facts = self.facts(node)
        refusal = "no such node" if facts is None else self.refusals.pop(0) if self.refusals else ""
        if facts is None or refusal:
            return Status(Code.ERROR, (refusal,))
        if facts.annotations.get(key, "") != was:
            return Status(Code.ERROR, ("somebody else was faster",))
        rest = {name: text for name, text in facts.annotations.items() if name != key}
        annotations = {**rest, key: value} if value else rest
        self.cluster.update_node(replace(facts, annotations=FrozenMap(annotations)))
        return None

    def has_pod(self, pod: str) -> bool:
        return self.cluster.pod(pod) is not None


class Farm:
    """A cluster and an engine over it; a restart makes another engine and forgets all but the pods.

    Nodes are locked where somebody plays their device plugins: `locks`.
    """

    def __init__(self, found: RuleSet, profile: str, *nodes: NodeFacts, locks: bool = False) -> None:
        self.rules, self.profile = found, profile
        self.cluster = ClusterCache()
        for each in nodes:
            self.cluster.add_node(each)
        self.binder = Moody(self.cluster)
        self.clock = ManualClock(1_700_000_000 * 10**9)
        self.nodes = ApiNodes(self.cluster) if locks else None
        self.engine = self._engine()

    def _engine(self) -> Engine:
        return build_engine(
            self.rules,
            self.cluster,
            self.binder,
            self.clock,
            Settings(profile=self.profile, detail=Detail.FULL),
            MemoryVolumes(self.cluster),
            SimulatedEvictor(self.cluster),
            annotator=MemoryAnnotations(self.cluster),
            nodes=self.nodes,
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


def choices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each node on which cards are chosen for a pod."""
    names = list[str]()

    def noted(programs: Any, demand: Demand, at: NodeCards, **others: Any) -> Any:
        names.append(at.node.name)
        return place(programs, demand, at, **others)

    monkeypatch.setattr(answers, "place", noted)
    return names

"""Nodes with cards, and pods that come to them one after the other; each keeps what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from kdsl.app import check_rules
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.devices.codec import collapse, decode
from kdsl.cluster.devices.pods import DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.usage import Holding, with_holdings
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.admission import admit_pod
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.devices.program import DeviceProgram, requests_of

from tests.devices.best import best_of

Json = dict[str, Any]
NOW = 1_700_000_000_000_000_001


def programs_of(*folders: Path) -> dict[str, DeviceProgram]:
    """Return the devices of rule folders by kind, compiled."""
    checked = check_rules(folders)
    assert checked.rules is not None, checked.diagnostics
    functions = CompiledFunctions(checked.rules.fns)
    compiled = [DeviceProgram(device, functions) for device in checked.rules.devices.values()]
    return {program.kind: program for program in compiled}


@dataclass(slots=True)
class Desk:
    """Serves pods. Nodes are filled, cards are spread, unless a pod's annotations say something else."""

    programs: Mapping[str, DeviceProgram]
    nodes: Mapping[str, DeviceNode]
    holdings: dict[str, list[Holding]] = field(default_factory=dict)

    @staticmethod
    def of(programs: Mapping[str, DeviceProgram], nodes: list[Json]) -> Desk:
        found = [DeviceNode.of(msgspec.convert(node, Node, strict=False)) for node in nodes]
        return Desk(programs, {node.name: node for node in found})

    def serve(self, written: Json) -> Json:
        """Admit a pod and place it; return what is to be said of it, see `test_vendors`."""
        pod = DevicePod.of(msgspec.convert(written, Pod, strict=False))
        admission = admit_pod([program.admit for program in self.programs.values()], pod)
        if admission.refusal:
            return {"refused": admission.refusal}
        pod = admission.pod
        said: Json = {"uses devices": admission.uses_devices}
        for each in pod.containers:
            said[f"limits of {each.name}"] = {name: str(amount) for name, amount in each.limits.items()}
            said[f"env of {each.name}"] = dict(each.env)
        return said | self._place(pod)

    def _place(self, pod: DevicePod) -> Json:
        requests = requests_of(list(self.programs.values()), pod)
        if not any(requests):
            return {}
        policy = Policy("binpack", "spread").of(pod.annotations)
        demand = Demand(pod, requests, policy)
        found = {name: place(self.programs, demand, self._cards(name)) for name in self.nodes}
        placed = {name: each for name, each in found.items() if isinstance(each, Placed)}
        if not placed:
            reasons = {name: each.reason for name, each in found.items() if not isinstance(each, Placed)}
            return {"reason": "; ".join(f"{name}: {text}" for name, text in reasons.items())}
        best = best_of({name: each.score for name, each in placed.items()}, policy)[0]
        written = {"hami.io/vgpu-node": best}
        for kind, allocation in placed[best].allocations.items():
            written |= self.programs[kind].annotations(pod, self.nodes[best], policy, allocation, NOW)
        self._keep(pod, best, written)
        cards = [written[self.programs[kind].record] for kind in placed[best].allocations]
        score = float(placed[best].score)
        return {"node": best, "cards": " ".join(cards), "score": score, "written": written}

    def _cards(self, name: str) -> NodeCards:
        node = self.nodes[name]
        idle = [card for program in self.programs.values() for card in program.inventory.cards(node)]
        return NodeCards(node, with_holdings(idle, self.holdings.get(name, ())))

    def _keep(self, pod: DevicePod, name: str, written: Mapping[str, str]) -> None:
        grants = {
            program.kind: collapse(decode(written[program.record]), pod.phases)
            for program in self.programs.values()
            if program.record in written
        }
        self.holdings.setdefault(name, []).append(Holding(pod.with_annotations(dict(written)), grants))

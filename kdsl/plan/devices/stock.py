"""The cards of nodes, with what the pods on them leave: rebuilt from the annotations of those pods.

Nothing is counted twice and nothing is remembered beside the pods: what was computed for a node is kept only
while the node and its pods are the very same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from kdsl.cluster.devices.cards import Card, Grant
from kdsl.cluster.devices.codec import held, shown
from kdsl.cluster.devices.pods import DeviceNode, DevicePod, Phase
from kdsl.cluster.devices.quota import Quota
from kdsl.cluster.devices.usage import Holding, with_holdings
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.values import EvalError
from kdsl.plan.devices.known import Shape
from kdsl.plan.devices.placing import NodeCards
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.devices.unread import UnreadRecords
from kdsl.plan.devices.watched import Absences


@dataclass(frozen=True, slots=True)
class Inventory:
    """The node with its idle cards, and their shapes; `faults` says by kind why those of a kind cannot be
    read.
    """

    at: NodeCards
    shapes: tuple[Shape, ...]
    faults: Mapping[str, str]

    @property
    def cards(self) -> tuple[Card, ...]:
        return self.at.cards


def device_pod(pod: PodInfo) -> DevicePod:
    """Return a pod as device rules see it."""
    return DevicePod(
        pod.name, pod.namespace, pod.uid, pod.labels, pod.annotations, containers=pod.device_containers
    )


def device_node(facts: NodeFacts) -> DeviceNode:
    """Return a node as device rules see it."""
    return DeviceNode(facts.name, facts.labels, facts.annotations, facts.device_capacity)


class Stock:
    """The cards that the devices of one profile find on nodes."""

    def __init__(self, programs: Mapping[str, DeviceProgram]) -> None:
        self.programs = programs
        self._inventories: dict[str, tuple[NodeFacts, Inventory]] = {}
        self._absences = Absences()
        self._unread = UnreadRecords()
        self._stocked: dict[str, tuple[NodeFacts, tuple[PodInfo, ...], NodeCards]] = {}

    def inventory(self, facts: NodeFacts) -> Inventory:
        """Return the idle cards of a node."""
        known = self._inventories.get(facts.name)
        if known is None or known[0] is not facts:
            known = self._inventories[facts.name] = (facts, self._read(facts))
        return known[1]

    def cards(self, node: NodeInfo) -> tuple[Card, ...]:
        """Return the cards of a node with what its pods have of them taken."""
        return self.at(node).cards

    def at(self, node: NodeInfo) -> NodeCards:
        """Return a node with its cards as they are."""
        facts, pods = node.facts, node.pods
        known = self._stocked.get(node.name)
        if known is not None and known[0] is facts and known[1] is pods:
            return known[2]
        at, more = self.idle(node), pods
        if known is not None and known[0] is facts and pods and known[1] == pods[:-1]:
            # Most often a pod came to those that were there.
            at, more = known[2], pods[-1:]
        at = NodeCards(at.node, with_holdings(at.cards, self.holdings(more)))
        self._stocked[node.name] = (facts, pods, at)
        return at

    def idle(self, node: NodeInfo) -> NodeCards:
        """Return a node with its cards as if no pod were on it."""
        return self.inventory(node.facts).at

    def holdings(self, pods: Iterable[PodInfo]) -> list[Holding]:
        """Return what pods have of cards by their annotations.

        A record that cannot be read holds nothing, as in HAMi: see `problems`.
        """
        found = []
        for pod in pods:
            grants = self.grants(pod)
            if grants:
                found.append(Holding(device_pod(pod), grants))
        return found

    def grants(self, pod: PodInfo) -> Mapping[str, tuple[Grant, ...]]:
        """Return what a pod has by kind."""
        annotations = pod.annotations
        if not annotations:
            return _NOTHING
        phases = tuple(each.phase for each in pod.device_containers)
        grants: dict[str, tuple[Grant, ...]] = {}
        problems: list[str] = []
        for kind, program in self.programs.items():
            if program.record in annotations:
                found = _granted(annotations[program.record], phases)
                if isinstance(found, str):
                    problems.append(f"annotation {program.record}: {found}; this record counts for nothing")
                elif found:
                    grants[kind] = found
        if problems and pod.node_name:
            self._unread.note(pod, problems)
        return grants

    def problems(self, snapshot: Snapshot) -> list[str]:
        """Return what is wrong with records of pods on nodes that were looked at."""
        return self._unread.told(snapshot)

    def quota(self, snapshot: Snapshot, namespace: str) -> Quota | None:
        """Return what a namespace may have of cards and what its pods have; None where nothing limits it."""
        names = {
            name
            for program in self.programs.values()
            for name in (program.quota_names.memory, program.quota_names.cores)
        }
        limits = {
            name: amount for name, amount in snapshot.catalog.quota_limits(namespace).items() if name in names
        }
        if not limits:
            return None
        quota = Quota(limits)
        for row in snapshot.order.tolist():
            for pod in snapshot.info(row).pods:
                if pod.namespace == namespace:
                    for kind, grants in self.grants(pod).items():
                        quota = quota.with_usage(self.programs[kind].quota_names, grants)
        return quota

    def _read(self, facts: NodeFacts) -> Inventory:
        node, faults = device_node(facts), dict[str, str]()
        cards: list[Card] = []
        absent = self._absences.of(node)
        for kind, program in self.programs.items():
            if kind in absent or (program.handshake is not None and program.handshake.is_gone(facts)):
                continue
            try:
                found, seen = program.inventory.read(node)
                known = {card.id for card in cards}
                twice = next((card.id for card in found if card.id in known), None)
                if twice is not None:
                    raise EvalError(f"card `{shown(twice)}` is of another kind, too")
                cards += found
                if not found:
                    self._absences.note(kind, seen)
            except EvalError as error:
                faults[kind] = error.message
        return Inventory(NodeCards(node, tuple(cards)), tuple([card.shape for card in cards]), faults)


_NOTHING: Mapping[str, tuple[Grant, ...]] = MappingProxyType({})
_LONG: Final = 2048


def _granted(text: str, phases: tuple[Phase, ...]) -> tuple[Grant, ...] | str:
    """Read a record; a text is why it cannot be read."""
    # Long ones are not kept: 65,536 of them would be.
    return _read(text, phases) if len(text) > _LONG else _known(text, phases)


def _read(text: str, phases: tuple[Phase, ...]) -> tuple[Grant, ...] | str:
    try:
        return held(text, phases)
    except ValueError as error:
        return str(error)


_known = lru_cache(maxsize=65536)(_read)

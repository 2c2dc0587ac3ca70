"""The cards of nodes, without those parts that pods on the node have: computed from the annotations of the
pods.

The result for a node is kept only while the node and its pods are the same objects, so nothing is counted
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from kdsl.base.resources import NOTHING, Resources
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.codec import shown
from kdsl.cluster.devices.pods import DeviceNode
from kdsl.cluster.devices.quota import NO_QUOTA, Quota, QuotaNames
from kdsl.cluster.devices.usage import with_holdings
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.catalog import Catalog
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.hooks.faults import Fault
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.device_error import DeviceError, fault_of
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.inventory import MAPS
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.devices.records import CardRecords

SPARE_NODES: Final = 1_024
"""The nodes that are remembered beside twice as many as there are rows."""
_Pods = tuple[PodInfo, ...]


def device_node(facts: NodeFacts, requested: Resources = NOTHING) -> DeviceNode:
    """Return a node as device rules read it; `requested` are the resources of its pods."""
    return DeviceNode(
        facts.name, facts.labels, facts.annotations, facts.device_capacity, facts.allocatable, requested
    )


class Inventories:
    """The cards that the devices of one profile find on nodes."""

    def __init__(self, programs: Mapping[str, DeviceProgram]) -> None:
        self.programs = programs
        self.records = CardRecords({kind: program.record for kind, program in programs.items()})
        self._needed = {kind: program.inventory.needed for kind, program in programs.items()}
        self._idle: dict[str, tuple[NodeFacts, NodeCards]] = {}
        self._used: dict[str, tuple[NodeFacts, _Pods, NodeCards]] = {}
        self._promised: dict[str, tuple[NodeFacts, _Pods, _Pods, NodeCards]] = {}

    def inventory(self, facts: NodeFacts) -> NodeCards:
        """Return a node with its cards as if it had no pods: the same object until a device rule reads
        something else of the node.
        """
        known = self._idle.get(facts.name)
        if known is not None and known[0] is facts:
            return known[1]
        is_equal = known is not None and self.reads_same(known[0], facts)
        found = known[1] if known is not None and is_equal else self._read(facts)
        self._idle[facts.name] = (facts, found)
        return found

    def forget_if_many(self, live: LiveSnapshot) -> None:
        """Forget all nodes once many of them are gone: new nodes may have new names for ever."""
        known = max(len(self._idle), len(self._used), len(self._promised))
        if known > 2 * len(live.names) + SPARE_NODES:
            self._idle, self._used, self._promised = {}, {}, {}

    def cards(self, node: NodeInfo) -> tuple[Card, ...]:
        """Return the cards of a node with the parts of its pods taken."""
        return self.at(node).cards

    def at(self, node: NodeInfo) -> NodeCards:
        """Return a node with its cards as they are."""
        facts, pods = node.facts, node.pods
        known = self._used.get(node.name)
        if known is not None and known[0] is facts and known[1] is pods:
            return known[2]
        at, more = self.inventory(facts), pods
        if known is not None and known[0] is facts and pods and known[1] == pods[:-1]:
            # Most often one pod was added.
            at, more = known[2], pods[-1:]
        found = self.what_if(node, with_holdings(at.cards, self.records.holdings(more)))
        self._used[node.name] = (facts, pods, found)
        return found

    def promised(self, node: NodeInfo, nominated: _Pods, compute: Callable[[], NodeCards]) -> NodeCards:
        """Return a node with the cards that its pods, some of them nominated, get by `compute`. Kept while
        the node has the same pods, and the same of them are nominated.
        """
        facts, pods, known = node.facts, node.pods, self._promised.get(node.name)
        if known is None or known[0] is not facts or known[1] != pods or known[2] != nominated:
            known = self._promised[node.name] = facts, pods, nominated, compute()
        return known[3]

    def what_if(self, node: NodeInfo, cards: tuple[Card, ...]) -> NodeCards:
        """Return a node as it would be with these cards."""
        facts = node.facts
        return NodeCards(device_node(facts, node.requested), cards, self.inventory(facts).faults)

    def quota(self, snapshot: Snapshot, namespace: str) -> Quota:
        """Return the limits of a namespace on cards and the usage of its pods."""
        quota_names = self._quota_names
        quota = Quota(self.limits(snapshot.catalog, namespace))
        if not quota.limits:
            return NO_QUOTA
        for row in snapshot.order.tolist():
            for pod in snapshot.info(row).pods:
                if pod.namespace == namespace:
                    for kind, grants in self.records.grants(pod).items():
                        quota = quota.with_usage(quota_names[kind], grants)
        return quota

    def limits(self, catalog: Catalog, namespace: str) -> Mapping[str, int]:
        """Return the limits of a namespace on cards: most quotas limit other resources only."""
        limits = catalog.quota_limits(namespace)
        return {name: limits[name] for name in limits.keys() & self._limited} if limits else limits

    @cached_property
    def _limited(self) -> frozenset[str]:
        return frozenset(name for each in self._quota_names.values() for name in (each.memory, each.cores))

    @cached_property
    def _quota_names(self) -> dict[str, QuotaNames]:
        return {kind: program.quota_names for kind, program in self.programs.items()}

    def _read(self, facts: NodeFacts) -> NodeCards:
        node, faults = device_node(facts), dict[str, Fault]()
        cards: dict[str, Card] = {}
        keys = set().union(*[getattr(node, name) for name in MAPS])
        for kind, needed in self._needed.items():
            if needed is not None and needed.isdisjoint(keys):
                continue
            program = self.programs[kind]
            if program.handshake is not None and program.handshake.is_gone(facts):
                continue
            try:
                found = {card.id: card for card in program.inventory.cards(node)}
                twice = next((name for name in found if name in cards), None)
                if twice is not None:
                    raise program.inventory.refused(f"card `{shown(twice)}` is of another kind, too", node)
                cards |= found
            except DeviceError as error:
                faults[kind] = fault_of(error, kind)
        return NodeCards(node, tuple(cards.values()), faults)

    @cached_property
    def _keys(self) -> frozenset[str] | None:
        read = [program.node_annotations for program in self.programs.values()]
        return None if None in read else frozenset(key for keys in read if keys for key in keys)

    @cached_property
    def _handshakes(self) -> list[Handshake]:
        return [each.handshake for each in self.programs.values() if each.handshake is not None]

    def reads_same(self, before: NodeFacts, after: NodeFacts) -> bool:
        """Return whether every device rule reads the same of two states of a node: of its labels, its
        amounts, and those annotations that some rule reads.
        """
        if self._keys is None or not (
            before.name == after.name
            and before.allocatable == after.allocatable
            # A loop of a rule goes through a map in its order.
            and [*before.labels.items()] == [*after.labels.items()]
            and [*before.device_capacity.items()] == [*after.device_capacity.items()]
        ):
            return False
        changed = {key for key, _ in before.annotations.items() ^ after.annotations.items()}
        if not self._keys.isdisjoint(changed):
            return False
        handshakes = [each for each in self._handshakes if each.key in changed]
        return all(each.is_gone(before) == each.is_gone(after) for each in handshakes)

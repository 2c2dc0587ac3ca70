"""The nodes that can use a slice or a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdsl.cluster.api.device_objects import Device, ResourceSlice
from kdsl.cluster.api.objects import NodeSelectorSpec
from kdsl.cluster.objects.selectors import NodeSelector

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo

NodeKey = tuple[str, tuple[str | None, ...]]
"""The parts of a node that matches read."""


class NodeMatch:
    """Whether nodes can use a slice or a device: by name, by selector, or all."""

    __slots__ = ("all_nodes", "names", "selectors")

    def __init__(self, name: str, all_nodes: bool, selector: NodeSelectorSpec | None) -> None:
        self.names: frozenset[str] = frozenset((name,)) if name else frozenset()
        self.all_nodes = all_nodes and not name
        self.selectors: tuple[NodeSelector, ...] = ()
        if selector is not None and not name and not all_nodes:
            self.selectors = (NodeSelector.of(selector),)

    @staticmethod
    def of_slice(thing: ResourceSlice) -> NodeMatch:
        """Return the match of a slice; one that leaves nodes to its devices matches if one of them does."""
        spec = thing.spec
        match = NodeMatch(spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection and not match.is_known:
            parts = [NodeMatch.of_device(device) for device in spec.devices]
            match.names = frozenset[str]().union(*(part.names for part in parts))
            match.all_nodes = any(part.all_nodes for part in parts)
            match.selectors = tuple(selector for part in parts for selector in part.selectors)
        return match

    @staticmethod
    def of_device(device: Device) -> NodeMatch:
        return NodeMatch(device.node_name, device.all_nodes, device.node_selector)

    @property
    def is_known(self) -> bool:
        return bool(self.names or self.all_nodes or self.selectors)

    def matches(self, node: NodeInfo) -> bool:
        return self.all_nodes or node.name in self.names or any(each.matches(node) for each in self.selectors)


@dataclass(frozen=True, slots=True)
class NodeReads:
    """The facts of nodes that some matches read: labels, and the name of nodes among `names`, of all nodes
    if it is None.
    """

    labels: tuple[str, ...]
    names: frozenset[str] | None

    @staticmethod
    def of(matches: Iterable[NodeMatch]) -> NodeReads:
        labels: set[str] = set()
        names: frozenset[str] | None = frozenset()
        for match in matches:
            names = None if names is None else names | match.names
            for selector in match.selectors:
                keys = selector.label_keys
                if keys is None:
                    names = None
                    keys = frozenset(one.key for term in selector.terms for one in term.labels)
                labels |= keys
        return NodeReads(tuple(sorted(labels)), names)

    def key(self, node: NodeInfo) -> NodeKey:
        """Return equal keys for nodes that are equal for all matches."""
        is_read = self.names is None or node.name in self.names
        return (node.name if is_read else "", tuple(map(node.labels.get, self.labels)))

"""The inputs of device rules from nodes.

Most updates of nodes, such as the heartbeats of device plugins, change none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from kdsl.cluster.devices.pods import DeviceNode
from kdsl.cluster.objects.node import NodeFacts
from kdsl.plan.devices.handshakes import Handshake
from kdsl.plan.devices.program import DeviceProgram


class KindsByKey:
    """The kinds that may have cards on a node, found by the keys that their inventories need."""

    def __init__(self, programs: Mapping[str, DeviceProgram]) -> None:
        self._always: set[str] = set()
        self._by_key: dict[str, dict[str, list[str]]] = {}
        for kind, program in programs.items():
            needed = program.inventory.needed
            if needed is None:
                self._always.add(kind)
                continue
            for name, keys in needed.items():
                by_key = self._by_key.setdefault(name, {})
                for key in keys:
                    by_key.setdefault(key, []).append(kind)

    def of(self, node: DeviceNode) -> set[str]:
        """Return the kinds of which the node has at least one key, and the kinds that need none."""
        found = self._always.copy()
        for name, by_key in self._by_key.items():
            for key in by_key.keys() & getattr(node, name):
                found.update(by_key[key])
        return found


class NodeInputs:
    """Compares the inputs of device rules from two states of a node.

    They are its labels, its amounts, and those annotations that some rule reads.
    """

    def __init__(self, programs: Mapping[str, DeviceProgram]) -> None:
        self._programs = programs.values()

    @cached_property
    def _keys(self) -> frozenset[str] | None:
        read = [program.node_annotations for program in self._programs]
        return None if None in read else frozenset(key for keys in read if keys for key in keys)

    @cached_property
    def _handshakes(self) -> list[Handshake]:
        return [each.handshake for each in self._programs if each.handshake is not None]

    def are_equal(self, before: NodeFacts, after: NodeFacts) -> bool:
        """Return whether every device rule reads the same from both states."""
        if self._keys is None or not (
            before.name == after.name
            and before.allocatable == after.allocatable
            # Rules see the order of maps.
            and [*before.labels.items()] == [*after.labels.items()]
            and [*before.device_capacity.items()] == [*after.device_capacity.items()]
        ):
            return False
        changed = {key for key, _ in before.annotations.items() ^ after.annotations.items()}
        if not self._keys.isdisjoint(changed):
            return False
        handshakes = [each for each in self._handshakes if each.key in changed]
        return all(each.is_gone(before) == each.is_gone(after) for each in handshakes)

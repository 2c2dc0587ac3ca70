"""The nodes of node groups: their number, the starting ones, and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kdsl.base.frozen_map import freeze
from kdsl.cluster.objects.node import NodeFacts
from kdsl.lab.time.plan import NodeGroup

HOSTNAME: Final = "kubernetes.io/hostname"


def node_of(group: NodeGroup, name: str) -> NodeFacts:
    """Return a node of a group. A label with the name of its host is its own."""
    template = group.template
    if HOSTNAME not in template.labels:
        return replace(template, name=name)
    return replace(template, name=name, labels=freeze({**template.labels, HOSTNAME: name}))


@dataclass(slots=True)
class Fleet:
    """The nodes of all groups by name; those in `starting` are ordered, but not there yet."""

    groups: Sequence[NodeGroup]
    group_of: dict[str, NodeGroup] = field(default_factory=dict)
    starting: dict[str, NodeFacts] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _named: dict[str, int] = field(default_factory=dict)

    def first(self) -> Iterator[NodeFacts]:
        """Yield the nodes that are there from the start."""
        for group in self.groups:
            for _ in range(group.least):
                yield self._new(group)

    def order(self, group: NodeGroup, count: int) -> list[str]:
        """Order so many nodes; return their names."""
        ordered = [self._new(group) for _ in range(count)]
        self.starting |= {facts.name: facts for facts in ordered}
        return [facts.name for facts in ordered]

    def remove(self, name: str) -> None:
        """Give a node back."""
        group = self.group_of.pop(name)
        self.starting.pop(name, None)
        self._sizes[group.name] -= 1

    def size(self, group: NodeGroup) -> int:
        """Return the number of nodes of a group, with those that start."""
        return self._sizes.get(group.name, 0)

    @property
    def rate(self) -> float:
        """The price of all nodes for an hour."""
        return sum(group.price * self.size(group) for group in self.groups)

    def _new(self, group: NodeGroup) -> NodeFacts:
        number = self._named[group.name] = self._named.get(group.name, 0) + 1
        name = f"{group.name}-{number}"
        self.group_of[name] = group
        self._sizes[group.name] = self.size(group) + 1
        return node_of(group, name)

"""Node classes: nodes that are equal in the facts and usage that most rules read.

A large cluster has few node classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo

NODE_CLASS_FIELDS: Final = (
    "unschedulable",
    "taints",
    "allocatable",
    "requested",
    "scored_requests",
    "pod_count",
    "used_host_ports",
)
"""The attributes in which the nodes of one class are equal. Names and labels differ for nearly every node."""

ClassOf = Callable[[NodeInfo], Hashable]
"""Returns a node's class as a value; equal for nodes of one class."""

NO_CLASS: Final = 0
"""The class of a row without a node."""

_SPARE = 1024


def node_class_of(node: NodeInfo) -> Hashable:
    """Return the class of a node: the values of `NODE_CLASS_FIELDS`."""
    facts = node.facts
    return (
        node.requested,
        node.scored_requests,
        len(node.pods),
        node.used_host_ports,
        facts.allocatable,
        facts.unschedulable,
        facts.taints,
    )


def fact_class_of(node: NodeInfo) -> Hashable:
    """Return the part of a node's class that does not depend on its pods."""
    facts = node.facts
    return facts.allocatable, facts.unschedulable, facts.taints


class NodeClasses:
    """The class of each row, by `node_class_of`, as a number that is valid for one `generation`.

    `ids` has a cell for every row, `size` is the number of numbers, `NO_CLASS` among them. If there are more
    than `most`, unused numbers should be dropped.
    """

    def __init__(self, node_class_of: ClassOf) -> None:
        self.generation = 0
        self._class_of = node_class_of
        self.ids: NDArray[np.intp] = np.zeros(0, np.intp)
        self._numbers: dict[Hashable, int] = {}
        self.size = 1
        self.most = _SPARE + 1

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows in all."""
        self.ids = np.concatenate((self.ids, np.zeros(rows - len(self.ids), np.intp)))
        self.most = 2 * rows + _SPARE + 1

    def renew(self) -> None:
        """Forget all numbers: a new generation begins."""
        self.generation += 1
        self._numbers.clear()
        self.size = 1
        self.ids[:] = NO_CLASS

    def put(self, row: int, node: NodeInfo) -> None:
        """Set the class of a row from its node."""
        number = self._numbers.setdefault(self._class_of(node), self.size)
        self.ids[row] = number
        if number == self.size:
            self.size += 1

    def clear(self, row: int) -> None:
        """Set the class of a row without a node."""
        self.ids[row] = NO_CLASS

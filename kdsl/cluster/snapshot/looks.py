"""Which nodes look alike: equal taints, equal room, as much of it taken. Rules say the same of them.

Large clusters are made of few kinds of nodes, and on those there are few kinds of load.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo

LOOK_FIELDS: Final = (
    "unschedulable",
    "taints",
    "allocatable",
    "requested",
    "scored_requests",
    "pod_count",
    "used_host_ports",
)
"""The attributes in which nodes of one look are equal. Names and labels tell nearly all nodes apart."""

LookOf = Callable[[NodeInfo], Hashable]
"""Returns what nodes that look alike share."""

NO_LOOK: Final = 0
"""The look of a row without a node."""

_SPARE = 1024


def look_of(node: NodeInfo) -> Hashable:
    """Return what nodes that look alike share: the values of `LOOK_FIELDS`."""
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


def look_of_facts(node: NodeInfo) -> Hashable:
    """Return what of a look is the node's own, whatever pods are on it."""
    facts = node.facts
    return facts.allocatable, facts.unschedulable, facts.taints


class Looks:
    """The look of each row, as `look_of` tells, as a number that is good for one `generation`.

    Numbers that no row has any more are dropped when there are too many. `ids` has a cell for every row.
    """

    def __init__(self, look_of: LookOf) -> None:
        self.generation = 0
        self._look_of = look_of
        self.ids: NDArray[np.intp] = np.zeros(0, np.intp)
        self._numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        """Return how many numbers there are, `NO_LOOK` among them."""
        return len(self._numbers) + 1

    @property
    def is_full(self) -> bool:
        """Tell whether it is time to number anew."""
        return len(self._numbers) > 2 * len(self.ids) + _SPARE

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows in all."""
        self.ids = np.concatenate((self.ids, np.zeros(rows - len(self.ids), np.intp)))

    def renew(self) -> None:
        """Forget all numbers: a new generation begins."""
        self.generation += 1
        self._numbers.clear()
        self.ids[:] = NO_LOOK

    def put(self, row: int, node: NodeInfo) -> None:
        """Number the look of a row's node."""
        look = self._look_of(node)
        self.ids[row] = self._numbers.setdefault(look, len(self._numbers) + 1)

    def clear(self, row: int) -> None:
        """Note that a row has no node any more."""
        self.ids[row] = NO_LOOK

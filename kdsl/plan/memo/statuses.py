"""The statuses of joined predicates, by number, and those of the nodes of one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.status import StatusTable
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.predicate_plugin import Ask

_IDS: Final = np.dtype(np.int32)
_LAST: Final = np.iinfo(np.int32).max


class JoinedStatuses:
    """The statuses of the predicates `names`, by number, and the position of the predicate of each. `numbers`
    has the numbering of each predicate's statuses.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.statuses = StatusTable()
        self._positions = {name: position for position, name in enumerate(names)}
        self.numbers = {name: StatusNumbers(self.statuses, name) for name in self._positions}
        self._column = np.array([_LAST], _IDS)

    def positions(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the positions of the predicates of these statuses; success is last."""
        column = self._column
        if len(column) < len(self.statuses):
            added = [self._positions[status.plugin] for status in self.statuses[len(column) :]]
            column = self._column = np.append(column, np.array(added, _IDS))
        return column.take(ids)

    def first(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the status number of the predicate that runs first, for each node."""
        found: NDArray[np.int32] = np.where(self.positions(other) < self.positions(one), other, one)
        return found


class NodeStatuses:
    """The status numbers of nodes so far: of the first predicate that rejects a node. `ids` is None while all
    nodes pass. At first, the statuses are those with which predicates rejected the pod.
    """

    def __init__(self, nodes: NodeSet, table: JoinedStatuses, rejections: Iterable[int]) -> None:
        self.ids: NDArray[np.int32] | None = None
        self.table = table
        self._nodes = nodes
        for number in rejections:
            self.add(np.full(len(nodes), number, _IDS))

    def add(self, found: NDArray[np.int32]) -> None:
        """Add the statuses of predicates for all nodes."""
        self.ids = found if self.ids is None else self.table.first(self.ids, found)

    def ask(self, position: int, predicate: Ask) -> None:
        """Ask the predicate at a position about the nodes that no earlier one rejects; None if all pass."""
        ids = self.ids
        if ids is None:
            found = predicate(self._nodes)
            if found is not None and np.count_nonzero(found):
                self.ids = found
            return
        places = (self.table.positions(ids) > position).nonzero()[0]
        found = predicate(self._nodes.take(places)) if len(places) else None
        if found is not None:
            self.ids = ids.copy()
            self.ids[places] = np.where(found, found, ids[places])

"""What has come to the nodes of a cluster, in order: most often one pod to one node, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.snapshot.snapshot import LiveSnapshot

_SPARE: Final = 1024
"""So many arrivals are kept however few rows there are; else as many as there are rows."""

Pods: TypeAlias = tuple[PodInfo, ...]

Arrival: TypeAlias = tuple[int, Pods | None]
"""A row and the pods that have come to its node; None where more than that has changed."""


class Arrivals:
    """A log of arrivals at the rows of a live snapshot. `position` is where it ends; it only rises."""

    def __init__(self) -> None:
        self.position = 0
        self._first = 0
        self._log: list[Arrival] = []
        self._changed = ChangedRows()
        # The node of each row as it was last looked at.
        self._nodes: list[NodeInfo | None] = []

    def refresh(self, live: LiveSnapshot) -> Sequence[Arrival] | None:
        """Look at the rows that changed. Return what has come since the last call, no row twice; None where
        all rows have to be looked at.
        """
        rows = self._changed.take(live.fact_changes, live.usage_changes)
        if rows is None:
            self._begin(live)
            return None
        nodes, names = self._nodes, live.names
        if len(nodes) < len(names):
            nodes += [None] * (len(names) - len(nodes))
        came: list[Arrival] = []
        for row in rows:
            before, node = nodes[row], live.info(row) if names[row] else None
            nodes[row] = node
            came.append((row, _further_pods(before, node)))
        self._log += came
        self.position += len(came)
        if len(self._log) > 2 * (len(live.names) + _SPARE):
            dropped = len(self._log) // 2
            del self._log[:dropped]
            self._first += dropped
        return came

    def since(self, position: int) -> Sequence[Arrival] | None:
        """Return what came after a position; None where that is not known any more."""
        return None if position < self._first else self._log[position - self._first :]

    def _begin(self, live: LiveSnapshot) -> None:
        self._nodes = [live.info(row) if name else None for row, name in enumerate(live.names)]
        self._log.clear()
        self.position += 1
        self._first = self.position


def _further_pods(before: NodeInfo | None, node: NodeInfo | None) -> Pods | None:
    """Return the pods that have come to a node; None where more than that has changed."""
    if before is None or node is None or before.facts is not node.facts:
        return None
    # Pods come last.
    known = len(before.pods)
    return node.pods[known:] if node.pods[:known] == before.pods else None

"""The log of arrivals at the nodes of a cluster. Most often, one pod comes to one node."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TypeAlias

from kdsl.base.change_log import ChangeLog
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot

Pods: TypeAlias = tuple[PodInfo, ...]

Arrival: TypeAlias = tuple[int, Pods | None]
"""A row and the pods that arrived at its node; None if more than that changed."""


class Arrivals(ChangeLog[Arrival]):
    """A log of arrivals at the rows of a live snapshot.

    `unmoved` are the rows of the last refresh whose nodes kept their labels and pods, as with a heartbeat.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unmoved: set[int] = set()
        self._changed = ChangedRows()
        # The node of each row at the last refresh.
        self._nodes: list[NodeInfo | None] = []

    def refresh(self, live: LiveSnapshot) -> Sequence[Arrival] | None:
        """Read the changed rows. Return the new arrivals, each row once; None if all rows have to be read."""
        rows = self._changed.take(live.fact_changes, live.usage_changes)
        if rows is None:
            self._nodes = live.nodes_by_row()
            self.start_over()
            return None
        nodes, names = self._nodes, live.names
        if len(nodes) < len(names):
            nodes += [None] * (len(names) - len(nodes))
        arrived: list[Arrival] = []
        if self.unmoved:
            self.unmoved = set()
        for row in rows:
            before, node = nodes[row], live.info(row) if names[row] else None
            nodes[row] = node
            pods = _added_pods(before, node)
            if pods is None and _is_unmoved(before, node):
                self.unmoved.add(row)
            arrived.append((row, pods))
            self.note(arrived[-1], len(names))
        return arrived


def _added_pods(before: NodeInfo | None, node: NodeInfo | None) -> Pods | None:
    """Return the pods that were added to a node; None if more than that changed."""
    if before is None or node is None or before.facts is not node.facts:
        return None
    # New pods are appended. Readers know pods by identity: an equal pod in place of another one is a change.
    known = len(before.pods)
    if known > len(node.pods) or not all(map(is_, before.pods, node.pods)):
        return None
    return node.pods[known:]


def _is_unmoved(before: NodeInfo | None, node: NodeInfo | None) -> bool:
    """Return whether a node kept its labels and pods."""
    if before is None or node is None:
        return False
    return before.pods is node.pods and before.facts.labels == node.facts.labels

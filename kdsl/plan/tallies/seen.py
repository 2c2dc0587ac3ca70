"""What has come to a node since it was last looked at: most often one pod, and nothing else."""

from __future__ import annotations

from kdsl.cluster.node import NodeFacts, NodeInfo
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import LiveSnapshot

Pods = tuple[PodInfo, ...]


class Seen:
    """The facts and pods of the node of each row, as they were when the row was looked at."""

    def __init__(self) -> None:
        self._rows: list[tuple[NodeFacts | None, Pods]] = []

    def begin(self, live: LiveSnapshot) -> None:
        """Look at all nodes as if no pod had come to them yet."""
        self._rows = [(live.info(row).facts if name else None, ()) for row, name in enumerate(live.names)]

    def look(self, live: LiveSnapshot, row: int) -> tuple[int, NodeInfo | None, Pods | None]:
        """Return the row, its node if it has one, and the pods that have come to the node, None where more
        than that has changed.
        """
        rows = self._rows
        if row >= len(rows):
            rows += [(None, ())] * (len(live.names) - len(rows))
        if not live.names[row]:
            rows[row] = (None, ())
            return row, None, None
        node = live.info(row)
        facts, pods = rows[row]
        rows[row] = (node.facts, node.pods)
        # Pods come last.
        if facts is not node.facts or node.pods[: len(pods)] != pods:
            return row, node, None
        return row, node, node.pods[len(pods) :]

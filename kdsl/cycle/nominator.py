"""Remembers which pending pods are promised which node, so that nobody else takes the room that is being made
for them.

In memory this is ahead of the pods' own `status.nominatedNodeName`, which it starts from.
"""

from __future__ import annotations

from kdsl.cluster.pod import PodInfo


class Nominator:
    """Nominated pods by node, in the order in which they were nominated."""

    def __init__(self) -> None:
        self._pods_by_node: dict[str, dict[str, PodInfo]] = {}
        self._nodes: dict[str, str] = {}

    def add(self, pod: PodInfo, node: str = "") -> None:
        """Nominate a pending pod for `node`, by default for the one in its status.

        A bound pod is not nominated. A pod without a node in its status keeps the nomination it has.
        """
        node = node or pod.nominated_node_name or self._nodes.get(_identity(pod), "")
        self.delete(pod)
        if pod.node_name or not node:
            return
        self._nodes[_identity(pod)] = node
        self._pods_by_node.setdefault(node, {})[_identity(pod)] = pod

    def clear(self, pod: PodInfo) -> None:
        """Withdraw the nomination of a pod that stays pending, whatever its status still says."""
        self.delete(pod)
        self._nodes[_identity(pod)] = ""

    def delete(self, pod: PodInfo) -> None:
        """Forget a pod that was placed or is gone."""
        node = self._nodes.pop(_identity(pod), "")
        pods = self._pods_by_node.get(node)
        if pods is not None:
            pods.pop(_identity(pod), None)
            if not pods:
                del self._pods_by_node[node]

    def node_of(self, pod: PodInfo) -> str:
        """Return the node the pod is promised, or an empty string."""
        return self._nodes.get(_identity(pod), pod.nominated_node_name)

    def rivals(self, pod: PodInfo) -> dict[str, tuple[PodInfo, ...]]:
        """Return whom `pod` must leave room for, by node: nominated pods of at least its priority."""
        found = {
            node: tuple(
                other
                for other in pods.values()
                if other.priority >= pod.priority and _identity(other) != _identity(pod)
            )
            for node, pods in self._pods_by_node.items()
        }
        return {node: pods for node, pods in found.items() if pods}


def _identity(pod: PodInfo) -> str:
    """The pod's UID, or its key where an input gives it none."""
    return pod.uid or pod.key

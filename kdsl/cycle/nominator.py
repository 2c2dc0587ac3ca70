"""Records which pending pods are nominated for which node, so that no other pod takes the room that is being
made for them.

This record is newer than the pods' own `status.nominatedNodeName`, from which it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kdsl.cluster.objects.pod import PodInfo


class Nominator:
    """Nominated pods by node, in the order in which they were nominated."""

    def __init__(
        self,
        withdrawn: Callable[[PodInfo], None] = lambda pod: None,
        changed: Callable[[PodInfo, PodInfo], None] = lambda before, after: None,
    ) -> None:
        """`withdrawn` is called with every pod whose nomination ends and leaves room on a node, `changed`
        with both versions of a pod that stays nominated.
        """
        self._withdrawn, self._changed = withdrawn, changed
        self._pods_by_node: dict[str, dict[str, PodInfo]] = {}
        self._nodes: dict[str, str] = {}

    def add(self, pod: PodInfo, node: str = "") -> None:
        """Nominate a pending pod for `node`, by default for the node in its status.

        A bound pod is not nominated. A pod without a node in its status keeps its nomination.
        """
        if not (node or pod.nominated_node_name or self._nodes):
            return
        identity = _identity(pod)
        before = self._nodes.get(identity, "")
        node = "" if pod.node_name else node or pod.nominated_node_name or before
        former = self._remove(pod)
        if node:
            self._nodes[identity] = node
            self._pods_by_node.setdefault(node, {})[identity] = pod
        if former is not None and before not in (node, pod.node_name):
            self._withdrawn(former)

    def reset(self, promised: Iterable[tuple[PodInfo, str]] = ()) -> None:
        """Forget everything, and nominate pods for nodes in this order; `withdrawn` is not called."""
        self._pods_by_node, self._nodes = {}, {}
        for pod, node in promised:
            self.add(pod, node)

    def renominate(self, before: PodInfo, after: PodInfo) -> None:
        """Apply the changed nomination in a pending pod's status.

        An unchanged one is ignored: the own nomination is newer, since the status is written later.
        """
        old, new = before.nominated_node_name, after.nominated_node_name
        current = self.node_of(before)
        if new != old:
            if new:
                self.add(after)
            elif current == old:
                self.clear(after)
            elif current:
                self.add(after, current)
        elif current:
            self.add(after, current)
        if current and self.node_of(after) == current:
            self._changed(before, after)

    def clear(self, pod: PodInfo) -> None:
        """Withdraw the nomination of a pod that stays pending, whatever its status says."""
        self.delete(pod)
        self._nodes[_identity(pod)] = ""

    def delete(self, pod: PodInfo, placed_on: str = "") -> None:
        """Forget a pod that is gone or was placed, on its nominated node or another."""
        if not self._nodes:
            return
        node = self._nodes.get(_identity(pod), "")
        former = self._remove(pod)
        if former is not None and node != placed_on:
            self._withdrawn(former)

    def _remove(self, pod: PodInfo) -> PodInfo | None:
        """Remove a pod; return the version of it that was nominated, if any."""
        identity = _identity(pod)
        node = self._nodes.pop(identity, "")
        pods = self._pods_by_node.get(node)
        if pods is None:
            return None
        former = pods.pop(identity, None)
        if not pods:
            del self._pods_by_node[node]
        return former

    def node_of(self, pod: PodInfo) -> str:
        """Return the nominated node of the pod, or an empty string."""
        known = self._nodes
        return known.get(_identity(pod), pod.nominated_node_name) if known else pod.nominated_node_name

    def pods_of(self, node: str) -> tuple[PodInfo, ...]:
        """Return the pods that are nominated for the node, in the order of their nominations."""
        return tuple(self._pods_by_node.get(node, {}).values())

    def promised(self) -> tuple[tuple[PodInfo, str], ...]:
        """Return all nominated pods with their nodes, those of one node in the order of their nominations."""
        return tuple((pod, node) for node, pods in self._pods_by_node.items() for pod in pods.values())

    def rivals(self, pod: PodInfo) -> dict[str, tuple[PodInfo, ...]]:
        """Return the nominated pods that `pod` must respect, by node: those of at least its priority."""
        if not self._pods_by_node:
            return {}
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
    """Return the pod's UID, or its key where the input has none."""
    return pod.uid or pod.key

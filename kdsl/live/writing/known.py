"""The last state from the API server that the cache does not keep: versions, conditions, uids, manifests.

The feed writes it on the scheduling thread. Other threads may read one object at a time; each answer may be
slightly out of date.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kdsl.live.watching.changes import LiveNode, LivePod, is_older

_OURS: Final = ("PodScheduled", "DisruptionTarget")
"""The conditions that the scheduler writes: others are not kept for running pods."""


class KnownObjects:
    """Pods and nodes as received; manifests are kept if plugins read them."""

    def __init__(self) -> None:
        self._pending: dict[str, LivePod] = {}
        self._placed: dict[str, LivePod] = {}
        self._nodes: dict[str, LiveNode] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._raw_pods: dict[str, bytes] = {}
        self._raw_nodes: dict[str, bytes] = {}

    # ---- pods --------------------------------------------------------------------------------------------

    def pod(self, key: str) -> LivePod | None:
        """Return the pod `namespace/name`."""
        return self._pending.get(key) or self._placed.get(key)

    def pending(self) -> tuple[LivePod, ...]:
        """Return the pods without a node, of all schedulers."""
        return tuple(self._pending.values())

    def placed(self) -> tuple[LivePod, ...]:
        """Return the pods on nodes."""
        return tuple(self._placed.values())

    def put_pod(self, key: str, pod: LivePod, raw: bytes) -> None:
        """Store a pod, with its JSON from the server, if that is kept."""
        if not pod.info.node_name:
            self._placed.pop(key, None)
            self._pending[key] = pod
        else:
            self._pending.pop(key, None)
            self._placed[key] = _without_others(pod)
        if raw:
            self._raw_pods[key] = raw

    def raw_pod(self, key: str) -> bytes:
        """Return the JSON of a pod from the server; empty if it is not kept."""
        return self._raw_pods.get(key, b"")

    def drop_pod(self, key: str) -> None:
        """Forget a pod that is gone."""
        self._pending.pop(key, None)
        self._placed.pop(key, None)
        self._raw_pods.pop(key, None)

    # ---- nodes -------------------------------------------------------------------------------------------

    def node(self, name: str) -> LiveNode | None:
        """Return a node."""
        return self._nodes.get(name)

    def nodes(self) -> tuple[LiveNode, ...]:
        """Return all nodes."""
        return tuple(self._nodes.values())

    def has_node(self, name: str) -> bool:
        """Return whether the node exists."""
        return name in self._nodes

    def raw_node(self, name: str) -> bytes:
        """Return the JSON of a node from the server; empty if it is not kept."""
        return self._raw_nodes.get(name, b"")

    def put_node(self, node: LiveNode, raw: bytes) -> None:
        """Store a node."""
        name = node.facts.name
        self._nodes[name] = node
        if raw:
            self._raw_nodes[name] = raw

    def drop_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self._raw_nodes.pop(name, None)

    # ---- versions ----------------------------------------------------------------------------------------

    def is_newer(self, kind: str, key: str, version: str) -> bool:
        """Store the version of an object; return False if it is not newer than the known one.

        Versions that are no numbers are compared for equality only.
        """
        known = self._versions.get((kind, key), "")
        if known == version:
            return not version
        if is_older(version, known):
            return False
        self._versions[kind, key] = version
        return True

    def forget_version(self, kind: str, key: str) -> None:
        """Forget an object that is gone."""
        self._versions.pop((kind, key), None)


def _without_others(pod: LivePod) -> LivePod:
    """Return a pod without the conditions of its kubelet, which take much memory in a large cluster."""
    kept = tuple([condition for condition in pod.conditions if condition.type in _OURS])
    return pod if len(kept) == len(pod.conditions) else replace(pod, conditions=kept)

"""What the scheduler hands to a plugin when it is activated: its ports to the outside, and nothing else of
the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from kdsl.base.clock import Clock
from kdsl.hooks.status import Status

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.storage.volume_plan import VolumePlan


class Binder(Protocol):
    """Carries a binding to the cluster: the API server, a simulated cluster, or a list in a test."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod; None means that the cluster took it, a status of code ERROR says why not."""
        ...


class VolumeBinder(Protocol):
    """Sets volumes aside for pods that have a node, and carries their binding to the cluster."""

    def assume(self, plan: VolumePlan) -> None:
        """Let later pods find taken what the plan takes."""
        ...

    def forget(self, plan: VolumePlan) -> None:
        """Give back what an assumed plan took; what is bound already stays."""
        ...

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        """Bind the volumes of an assumed plan; None means that they are bound, an ERROR says why not."""
        ...


class _NoVolumes:
    """Where pods are judged and nothing is placed, nothing is set aside or bound."""

    def assume(self, plan: VolumePlan) -> None:
        return None

    def forget(self, plan: VolumePlan) -> None:
        return None

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        return None


NO_VOLUMES: Final[VolumeBinder] = _NoVolumes()


class PodAnnotator(Protocol):
    """Writes annotations on pods that have a node: what devices give them."""

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Let later pods see an assumed pod with these annotations in place of its own."""
        ...

    def forget(self, pod: PodInfo) -> None:
        """Let later pods see the pod, if it is still assumed, with the annotations that it has."""
        ...

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        """Add annotations to the pod in the cluster; None means that it has them, an ERROR says why not."""
        ...


class _NoAnnotations:
    """Where pods are judged and nothing is placed, nothing is written."""

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        return None

    def forget(self, pod: PodInfo) -> None:
        return None

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        return None


NO_ANNOTATIONS: Final[PodAnnotator] = _NoAnnotations()


class NodeAnnotator(Protocol):
    """Reads and writes annotations of nodes, by which schedulers and device plugins talk to each other."""

    def read(self, node: str) -> Mapping[str, str] | None:
        """Return the annotations that a node has now, None where there is no such node."""
        ...

    def write(self, node: str, key: str, value: str, was: str) -> Status | None:
        """Give an annotation a value where it still `was` the other one; an empty text is no annotation.

        None means that it has it, an ERROR says why not: the node is gone, or somebody else was faster.
        """
        ...

    def has_pod(self, pod: str) -> bool:
        """Tell whether there is a pod `namespace/name`."""
        ...


class Manifests(Protocol):
    """Objects of the API as they were written, as plain JSON values, behind what hooks are given."""

    def pod(self, pod: PodInfo) -> Mapping[str, Any]:
        """Return the v1 Pod, on the node it is on by now."""
        ...

    def node(self, node: NodeInfo) -> Mapping[str, Any]:
        """Return the v1 Node."""
        ...


class _NoManifests:
    """Where nobody has kept them, there is what an object is known by."""

    def pod(self, pod: PodInfo) -> Mapping[str, Any]:
        meta = _metadata(pod.name, pod.labels, pod.annotations) | {"namespace": pod.namespace, "uid": pod.uid}
        spec = {"schedulerName": pod.scheduler_name} | ({"nodeName": pod.node_name} if pod.node_name else {})
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def node(self, node: NodeInfo) -> Mapping[str, Any]:
        meta = _metadata(node.name, node.labels, node.annotations)
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def _metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "labels": dict(labels), "annotations": dict(annotations)}


NO_MANIFESTS: Final[Manifests] = _NoManifests()


class Permits(Protocol):
    """The pods that a `permit` hook asked to hold, for the plugin that asked."""

    def allow(self, pod: str, plugin: str) -> bool:
        """Let the pod `namespace/name` go on as far as `plugin` is concerned; False where it is not held."""
        ...

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Send the pod back to the queue; False where it is not held."""
        ...


@dataclass(frozen=True, slots=True)
class PluginContext:
    """The ports a plugin may keep. A plugin is built with `(args, context)`.

    `is_live` tells that there is a cluster behind them. Where there is none, in simulations and tests, a
    plugin must change nothing outside by itself. Without `nodes` nothing is locked: there is no device plugin
    that would give locks back.
    """

    binder: Binder
    clock: Clock
    permits: Permits
    volumes: VolumeBinder = NO_VOLUMES
    annotator: PodAnnotator = NO_ANNOTATIONS
    manifests: Manifests = NO_MANIFESTS
    nodes: NodeAnnotator | None = None
    is_live: bool = False

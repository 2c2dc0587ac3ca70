"""The ports that the scheduler passes to a plugin when it is activated; a plugin gets nothing else of the
core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from kdsl.base.clock import Clock
from kdsl.hooks.status import Status

if TYPE_CHECKING:
    from kdsl.cluster.api.device_objects import ResourceClaim
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.resource_claims.claim_plan import ClaimPlan
    from kdsl.cluster.storage.volume_plan import VolumePlan


class Binder(Protocol):
    """Sends a binding to the cluster: the API server, a simulated cluster, or a list in a test."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod; None means success, a status of code ERROR holds the reason."""
        ...


class VolumeBinder(Protocol):
    """Reserves volumes for pods that have a node, and sends their binding to the cluster."""

    def assume(self, plan: VolumePlan) -> None:
        """Reserve the volumes of the plan, so that later pods do not get them."""
        ...

    def forget(self, plan: VolumePlan) -> None:
        """Release the volumes of an assumed plan; bound ones stay bound."""
        ...

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        """Bind the volumes of an assumed plan; None means success, an ERROR holds the reason."""
        ...


class _NoVolumes:
    """The port where pods are judged and not placed: it reserves and binds no volumes."""

    def assume(self, plan: VolumePlan) -> None:
        return None

    def forget(self, plan: VolumePlan) -> None:
        return None

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        return None


NO_VOLUMES: Final[VolumeBinder] = _NoVolumes()


class ClaimWriter(Protocol):
    """Keeps devices for pods that have a node, and writes the claims of devices to the cluster."""

    def find(self, key: str) -> ResourceClaim | None:
        """Return the present claim `namespace/name`."""
        ...

    def pending(self) -> Mapping[str, ResourceClaim]:
        """Return the claims whose new allocation is assumed and not known to be written, by key."""
        ...

    def assume(self, plan: ClaimPlan) -> None:
        """Keep the devices of the plan, so that later pods do not get them."""
        ...

    def forget(self, plan: ClaimPlan) -> None:
        """Release an assumed plan: devices that are not written, and the pod as user of its claims."""
        ...

    def write(self, pod: PodInfo, plan: ClaimPlan) -> Status | None:
        """Write the claims of an assumed plan; None means success, an ERROR holds the reason."""
        ...

    def deallocate(self, claim: ResourceClaim) -> Status | None:
        """Take the devices away from a claim that nobody else uses; an ERROR holds the reason."""
        ...

    def delete(self, claim: ResourceClaim) -> Status | None:
        """Delete a claim that was created for a pod; an ERROR holds the reason."""
        ...


class _NoClaims:
    """The port where pods are judged and not placed: it has and writes no claims."""

    def find(self, key: str) -> ResourceClaim | None:
        return None

    def pending(self) -> Mapping[str, ResourceClaim]:
        return {}

    def assume(self, plan: ClaimPlan) -> None:
        return None

    def forget(self, plan: ClaimPlan) -> None:
        return None

    def write(self, pod: PodInfo, plan: ClaimPlan) -> Status | None:
        return None

    def deallocate(self, claim: ResourceClaim) -> Status | None:
        return None

    def delete(self, claim: ResourceClaim) -> Status | None:
        return None


NO_CLAIMS: Final[ClaimWriter] = _NoClaims()


class PodAnnotator(Protocol):
    """Writes annotations on pods that have a node: the devices that the pod gets."""

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        """Replace the annotations of an assumed pod, as later pods read them."""
        ...

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        """Add annotations to the pod in the cluster; None means success, an ERROR holds the reason."""
        ...


class _NoAnnotations:
    """The port where pods are judged and not placed: it writes no annotations."""

    def assume(self, pod: PodInfo, annotations: Mapping[str, str]) -> None:
        return None

    def write(self, pod: PodInfo, annotations: Mapping[str, str]) -> Status | None:
        return None


NO_ANNOTATIONS: Final[PodAnnotator] = _NoAnnotations()


class NodeAnnotator(Protocol):
    """Reads and writes annotations of nodes, through which schedulers and device plugins communicate."""

    def read(self, node: str) -> Mapping[str, str] | None:
        """Return the present annotations of a node, None where it does not exist."""
        ...

    def write(self, node: str, key: str, value: str, was: str) -> Status | None:
        """Set an annotation if its present value is `was`; an empty text means no annotation.

        None means success, an ERROR holds the reason: the node is gone, or another client changed it first.
        """
        ...

    def has_pod(self, pod: str) -> bool:
        """Return whether the pod `namespace/name` exists."""
        ...


class Manifests(Protocol):
    """The original API objects as plain JSON values, for the pods and nodes that hooks get."""

    def pod(self, pod: PodInfo) -> Mapping[str, Any]:
        """Return the v1 Pod, with its present node."""
        ...

    def node(self, node: NodeInfo) -> Mapping[str, Any]:
        """Return the v1 Node."""
        ...


class _NoManifests:
    """The port where manifests are not kept: it returns the identifying fields of an object."""

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
    """The pods that a `permit` hook asked to hold, for that hook's plugin."""

    def allow(self, pod: str, plugin: str) -> bool:
        """Record that `plugin` allows the pod `namespace/name`; return False where it is not held."""
        ...

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Send the pod back to the queue; return False where it is not held."""
        ...


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """The answer of a condition for a device, and the steps it took; `problem` is why it failed, or empty."""

    holds: bool
    steps: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DeviceCondition:
    """A compiled condition: `answer` evaluates it for a device, as `DeviceConditions` describes it.

    `attributes` are the attributes that it reads, by domain and name, None for any. It may read all else.
    """

    answer: Callable[[Mapping[str, Any]], DeviceAnswer]
    attributes: frozenset[tuple[str, str]] | None = None


class DeviceConditions(Protocol):
    """Compiles the CEL conditions of device classes and claims, with one variable, `device`.

    A device is a mapping with the keys `driver`, `attributes`, `capacity` and `allowMultipleAllocations`.
    Attributes and capacities are maps by domain of maps by name; values are texts, numbers, bools, `Semver`
    and `Quantity`. Each answer has a bound; who asks for many has a budget for their steps.
    """

    def compile(self, text: str) -> DeviceCondition:
        """Compile a CEL condition on `device`; ValueError with the reason for an invalid one."""
        ...


class _NoConditions:
    """The port where no devices are allocated: it evaluates no conditions."""

    def compile(self, text: str) -> DeviceCondition:
        raise ValueError("conditions on devices are not evaluated here")


NO_CONDITIONS: Final[DeviceConditions] = _NoConditions()


@dataclass(frozen=True, slots=True)
class PluginContext:
    """The ports a plugin may keep. A plugin is built with `(args, context)`.

    `is_live` is true if the ports lead to a cluster. Where it is false, in simulations and tests, a plugin
    must not change anything outside by itself. Without `nodes` no locks are taken: no device plugin would
    release them.
    """

    binder: Binder
    clock: Clock
    permits: Permits
    volumes: VolumeBinder = NO_VOLUMES
    annotator: PodAnnotator = NO_ANNOTATIONS
    manifests: Manifests = NO_MANIFESTS
    nodes: NodeAnnotator | None = None
    is_live: bool = False
    claims: ClaimWriter = NO_CLAIMS
    conditions: DeviceConditions = NO_CONDITIONS

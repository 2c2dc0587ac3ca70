"""A pod as the scheduler uses it: the facts that rules read, computed once.

The cache, the cycle and the back ends use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kdsl.base.frozen_map import NO_STRINGS, FrozenMap, freeze, share
from kdsl.base.resources import NOTHING, Resources
from kdsl.cluster.api.objects import OwnerReference, Pod, PodSpec, SchedulingGate
from kdsl.cluster.devices.pods import DeviceContainer, containers_of
from kdsl.cluster.objects.containers import Container, read_amounts, read_containers
from kdsl.cluster.objects.device_claims import DeviceClaim, device_claims_of
from kdsl.cluster.objects.images import tagged
from kdsl.cluster.objects.label_selectors import SELECTED_KEYS
from kdsl.cluster.objects.node_columns import Mask, NodeColumns, none_of
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm, preferred_terms, required_terms
from kdsl.cluster.objects.pod_volumes import PodVolume, read_volumes
from kdsl.cluster.objects.ports import EVERY_ADDRESS, HostPort
from kdsl.cluster.objects.requests import pod_requests
from kdsl.cluster.objects.selectors import NodeSelector, PreferredNodeTerm, Selectable, read_term
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint, Toleration

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")
NEVER: Final = 253_402_300_799 * 10**9  # 9999-12-31T23:59:59Z, the latest timestamp of CEL
PREEMPT_LOWER: Final = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of the pod: a ReplicaSet, a StatefulSet and so on."""

    api_version: str
    kind: str
    name: str
    uid: str


class PodInfo(Struct, frozen=True):
    """The facts of a pod. Fields are those of the `Pod` view; times are nanoseconds since the Unix epoch, 0
    for none.

    `requests` and `scored_requests` are the amounts that the pod needs for its placement, `usage` and
    `scored_usage` the amounts it counts for on its node: see `requests.py`. `device_containers` is filled
    where one of the containers names an extended resource. `namespace_labels` and `device_resources` come
    from the catalog: `Catalog.complete` fills them in.
    """

    # Not a dataclass: every placement creates one, and a dataclass takes 20 times as long to set its fields.

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: FrozenMap[str, str] = NO_STRINGS
    annotations: FrozenMap[str, str] = NO_STRINGS
    created_at: int = 0
    node_name: str = ""
    nominated_node_name: str = ""
    scheduler_name: str = "default-scheduler"
    service_account: str = ""
    priority: int = 0
    phase: str = ""
    deletion_timestamp: int = 0
    being_preempted: bool = False
    start_time: int = 0
    preemption_policy: str = PREEMPT_LOWER
    owner_references: tuple[OwnerReference, ...] = ()
    namespace_labels: FrozenMap[str, str] = NO_STRINGS
    scheduling_gates: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: FrozenMap[str, str] = NO_STRINGS
    required_node_affinity: NodeSelector | None = None
    preferred_node_terms: tuple[PreferredNodeTerm, ...] = ()
    required_affinity: tuple[PodAffinityTerm, ...] = ()
    required_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    resource_claims: tuple[DeviceClaim, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    requests: Resources = NOTHING
    scored_requests: Resources = NOTHING
    usage: Resources = NOTHING
    scored_usage: Resources = NOTHING
    images: tuple[str, ...] = ()
    container_count: int = 0
    host_network: bool = False
    overhead: Resources = NOTHING
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    device_containers: tuple[DeviceContainer, ...] = ()
    device_resources: tuple[str, ...] = ()

    @staticmethod
    def of(pod: Pod) -> PodInfo:
        """Convert an API object, which must have its defaults."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        affinity = spec.affinity.node_affinity
        requests = pod_requests(pod)
        return PodInfo(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            labels=share(meta.labels),
            annotations=freeze(meta.annotations),
            created_at=nanoseconds(meta.creation_timestamp),
            node_name=spec.node_name,
            nominated_node_name=status.nominated_node_name,
            scheduler_name=spec.scheduler_name,
            service_account=spec.service_account_name,
            priority=spec.priority or 0,
            phase=status.phase,
            deletion_timestamp=nanoseconds(meta.deletion_timestamp),
            scheduling_gates=tuple(gate.name for gate in spec.scheduling_gates),
            tolerations=tuple(
                Toleration(one.key, one.operator, one.value, one.effect) for one in spec.tolerations
            ),
            node_selector=freeze(spec.node_selector),
            required_node_affinity=None if affinity.required is None else NodeSelector.of(affinity.required),
            preferred_node_terms=tuple(
                PreferredNodeTerm(read_term(one.preference), one.weight)
                for one in affinity.preferred
                if one.weight
            ),
            host_ports=_host_ports(spec),
            requests=requests.requests,
            scored_requests=requests.scored,
            usage=requests.usage,
            scored_usage=requests.scored_usage,
            images=_images(spec),
            container_count=len(spec.init_containers) + len(spec.containers),
            host_network=spec.host_network,
            overhead=read_amounts(spec.overhead),
            containers=read_containers(spec.containers),
            init_containers=read_containers(spec.init_containers),
            device_containers=_device_containers(spec),
            being_preempted=meta.deletion_timestamp is not None and _is_preempted(pod),
            start_time=nanoseconds(pod.status.start_time),
            preemption_policy=spec.preemption_policy or PREEMPT_LOWER,
            owner_references=tuple(meta.owner_references),
            required_affinity=required_terms(spec.affinity.pod_affinity, meta),
            required_anti_affinity=required_terms(spec.affinity.pod_anti_affinity, meta),
            preferred_affinity=preferred_terms(spec.affinity.pod_affinity, meta),
            preferred_anti_affinity=preferred_terms(spec.affinity.pod_anti_affinity, meta),
            spread_constraints=tuple(
                SpreadConstraint.of(one, meta) for one in spec.topology_spread_constraints
            ),
            volumes=read_volumes(spec.volumes, meta.name),
            resource_claims=device_claims_of(pod),
        )

    @property
    def key(self) -> str:
        """The unique name of the pod in the cluster: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        """Return whether the pod has ended, and so uses no resources of its node any more."""
        return self.phase in _TERMINAL_PHASES

    @property
    def is_terminating(self) -> bool:
        """Return whether the pod is being deleted."""
        return self.deletion_timestamp != 0

    @property
    def owner(self) -> Owner | None:
        """The owner that controls the pod, if any."""
        if not self.owner_references:
            return None
        found = next((one for one in self.owner_references if one.controller), None)
        return None if found is None else Owner(found.api_version, found.kind, found.name, found.uid)

    @property
    def gates(self) -> tuple[SchedulingGate, ...]:
        """The scheduling gates as objects of the API."""
        return tuple(map(SchedulingGate, self.scheduling_gates))

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The names of the claims of the pod's volumes, including the claims created for it."""
        return tuple(volume.claim_name for volume in self.volumes if volume.claim_name)

    def can_be_on(self, node: Selectable) -> bool:
        """Return whether nodeSelector and required node affinity allow `node`."""
        labels = node.labels
        if any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        return self.required_node_affinity is None or self.required_node_affinity.matches(node)

    def can_be_on_over(self, nodes: NodeColumns) -> Mask:
        """Return which of `nodes` nodeSelector and required node affinity allow."""
        affinity = self.required_node_affinity
        allowed = ~none_of(nodes) if affinity is None else affinity.matches_over(nodes)
        for key, value in self.node_selector.items():
            allowed &= nodes.has_label_in(key, (value,))
        return allowed

    @property
    def affine_label_keys(self) -> frozenset[str] | None:
        """The label keys that decide `can_be_on` for a node; None where other facts decide, too."""
        affinity = self.required_node_affinity
        keys: frozenset[str] | None = frozenset() if affinity is None else affinity.label_keys
        return None if keys is None else keys.union(self.node_selector)

    @property
    def has_affinity_terms(self) -> bool:
        """Return whether the pod has affinity or anti-affinity terms."""
        return bool(
            self.required_affinity
            or self.required_anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )

    @property
    def selected_labels(self) -> tuple[tuple[str, str], ...]:
        """The labels that a selector may name; no selector depends on the others."""
        return SELECTED_KEYS.among(self.labels)

    @property
    def started_at(self) -> int:
        """The time at which the pod started; the end of time for a pod that has not started."""
        return self.start_time or NEVER

    def tolerates(self, taint: Taint) -> bool:
        """Return whether some toleration of the pod matches `taint`."""
        for toleration in self.tolerations:  # noqa: SIM110 - few, and often asked
            if toleration.tolerates(taint):
                return True
        return False

    def on(self, node_name: str) -> PodInfo:
        """Return this pod as placed on node `node_name`."""
        return replace(self, node_name=node_name)

    def with_fields(self, **fields: Any) -> PodInfo:
        """Return a copy of this pod with other values in some fields."""
        return replace(self, **fields)


def _device_containers(spec: PodSpec) -> tuple[DeviceContainer, ...]:
    """Return the containers where one of them names an extended resource, else none."""
    amounts = (each.resources for each in (*spec.init_containers, *spec.containers))
    if any("/" in name for one in amounts for name in (*one.limits, *one.requests)):
        return tuple(each.extended() for each in containers_of(spec))
    return ()


def nanoseconds(time: datetime | None) -> int:
    """Return a time as nanoseconds since the Unix epoch; an absent one is 0."""
    return 0 if time is None else (time - _EPOCH) // timedelta(microseconds=1) * 1000


def _is_preempted(pod: Pod) -> bool:
    """Return whether a scheduler has marked the pod as a victim."""
    return any(
        one.type == "DisruptionTarget" and one.status == "True" and one.reason == "PreemptionByScheduler"
        for one in pod.status.conditions
    )


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars, each once."""
    running = (
        *spec.containers,
        *(one for one in spec.init_containers if one.restart_policy == "Always"),
    )
    ports = {
        HostPort(port.host_ip or EVERY_ADDRESS, port.protocol or "TCP", port.host_port): None
        for container in running
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(ports)


def _images(spec: PodSpec) -> tuple[str, ...]:
    """Return the images of init containers, containers and image volumes, with repetitions."""
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names.extend(volume.image.reference for volume in spec.volumes if volume.image is not None)
    return tuple(tagged(name) for name in names if name)

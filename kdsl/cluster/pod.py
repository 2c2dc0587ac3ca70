"""A pod as the scheduler sees it: what rules read of it, computed once.

Everything from the cache to the back ends uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from kdsl.base.resources import NOTHING, Resources
from kdsl.cluster.frozen_map import NO_STRINGS, FrozenMap, freeze
from kdsl.cluster.images import tagged
from kdsl.cluster.objects import Container, Pod, PodSpec
from kdsl.cluster.ports import EVERY_ADDRESS, HostPort
from kdsl.cluster.requests import pod_requests
from kdsl.cluster.selectors import NodeSelector, PreferredNodeTerm, read_term
from kdsl.cluster.taints import Taint, Toleration

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class PodInfo:
    """What is known of a pod. Fields are those of the `Pod` view; times are nanoseconds since the Unix epoch.

    `requests` and `scored_requests` are what the pod asks for while it is placed, `usage` and `scored_usage`
    what it counts for on its node: see `kdsl.cluster.requests`.
    """

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
    is_terminating: bool = False
    scheduling_gates: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: FrozenMap[str, str] = NO_STRINGS
    required_node_affinity: NodeSelector | None = None
    preferred_node_terms: tuple[PreferredNodeTerm, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    requests: Resources = NOTHING
    scored_requests: Resources = NOTHING
    usage: Resources = NOTHING
    scored_usage: Resources = NOTHING
    images: tuple[str, ...] = ()
    container_count: int = 0

    @staticmethod
    def of(pod: Pod) -> PodInfo:
        """Read an API object, which must have its defaults."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        affinity = spec.affinity.node_affinity
        requests = pod_requests(pod)
        return PodInfo(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            labels=freeze(meta.labels),
            annotations=freeze(meta.annotations),
            created_at=nanoseconds(meta.creation_timestamp),
            node_name=spec.node_name,
            nominated_node_name=status.nominated_node_name,
            scheduler_name=spec.scheduler_name,
            service_account=spec.service_account_name,
            priority=spec.priority or 0,
            phase=status.phase,
            is_terminating=meta.deletion_timestamp is not None,
            scheduling_gates=tuple(gate.name for gate in spec.scheduling_gates),
            tolerations=tuple(
                Toleration(one.key, one.operator, one.value, one.effect) for one in spec.tolerations
            ),
            node_selector=freeze(spec.node_selector),
            required_node_affinity=None if affinity.required is None else NodeSelector.of(affinity.required),
            preferred_node_terms=tuple(
                PreferredNodeTerm(one.weight, read_term(one.preference))
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
        )

    @property
    def key(self) -> str:
        """The name that is unique in the cluster: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        """Tell whether the pod has run to its end, and so takes nothing of its node any more."""
        return self.phase in _TERMINAL_PHASES

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether some toleration of the pod matches `taint`."""
        return any(toleration.tolerates(taint) for toleration in self.tolerations)

    def on(self, node_name: str) -> PodInfo:
        """Return this pod as it is when placed on node `node_name`."""
        return replace(self, node_name=node_name)


def nanoseconds(time: datetime | None) -> int:
    """Return a time as nanoseconds since the Unix epoch; an absent one is 0."""
    return 0 if time is None else (time - _EPOCH) // timedelta(microseconds=1) * 1000


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars, each once."""
    running: Iterable[Container] = (
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
    """Return the images of init containers, containers and image volumes, as often as they are used."""
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names.extend(volume.image.reference for volume in spec.volumes if volume.image is not None)
    return tuple(tagged(name) for name in names if name)

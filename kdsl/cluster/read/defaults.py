"""The API server's defaults for objects from files, which it would fill in when it stores them.

Only defaults that change a decision are here (k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, 1.36).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kdsl.base.resources import CPU, MEMORY
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.api.objects import Container, Node, Pod, PodSpec, ResourceList, ResourceRequirements, Volume
from kdsl.cluster.objects.pod import PREEMPT_LOWER
from kdsl.cluster.objects.requests import container_requests, is_pod_level_resource
from kdsl.cluster.read.catalog_defaults import default_catalog_object, default_metadata

DEFAULT_SCHEDULER: Final = "default-scheduler"
DEFAULT_PROTOCOL: Final = "TCP"
DEFAULT_RBD_POOL: Final = "rbd"


def with_defaults(api_object: KubeObject) -> KubeObject:
    """Return `api_object` with the API server's defaults in its absent fields."""
    if isinstance(api_object, Pod):
        return default_pod(api_object)
    if isinstance(api_object, Node):
        return default_node(api_object)
    return default_catalog_object(api_object)


def default_pod(pod: Pod) -> Pod:
    """Return `pod` with namespace, uid, scheduler, priority, ports and requests filled in."""
    meta, spec = default_metadata(pod.metadata, is_namespaced=True), pod.spec
    spec = replace(
        spec,
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or PREEMPT_LOWER,
        volumes=[_default_volume(one) for one in spec.volumes],
        containers=[_default_container(one, spec.host_network) for one in spec.containers],
        init_containers=[_default_container(one, spec.host_network) for one in spec.init_containers],
    )
    if spec.resources.limits:
        spec = replace(spec, resources=_default_pod_level(spec))
    return replace(pod, metadata=meta, spec=spec)


def default_node(node: Node) -> Node:
    """Return `node` with `allocatable` filled from `capacity` where it is absent, and a uid."""
    meta = default_metadata(node.metadata, is_namespaced=False)
    status = node.status
    if status.allocatable is None:
        status = replace(status, allocatable=status.capacity)
    return replace(node, metadata=meta, status=status)


def _default_container(container: Container, host_network: bool) -> Container:
    resources = container.resources
    if resources.limits:
        requests = {**resources.limits, **resources.requests}
        container = replace(container, resources=replace(resources, requests=requests))
    if container.ports:
        ports = [
            replace(
                port,
                protocol=port.protocol or DEFAULT_PROTOCOL,
                host_port=port.host_port or (port.container_port if host_network else 0),
            )
            for port in container.ports
        ]
        container = replace(container, ports=ports)
    return container


def _default_volume(volume: Volume) -> Volume:
    if volume.rbd is None or volume.rbd.pool:
        return volume
    return replace(volume, rbd=replace(volume.rbd, pool=DEFAULT_RBD_POOL))


def _default_pod_level(spec: PodSpec) -> ResourceRequirements:
    """Fill pod-level requests where there are pod-level limits.

    For cpu and memory the containers' requests take precedence over the limit.
    """
    resources = spec.resources
    asked = container_requests(spec)
    requests: ResourceList = {name: asked[name] for name in (CPU, MEMORY) if name in asked}
    requests.update(resources.requests)
    for name, limit in resources.limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, limit)
    return replace(resources, requests=requests)

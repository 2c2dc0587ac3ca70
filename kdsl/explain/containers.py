"""The device containers of a pod whose requests were changed."""

from __future__ import annotations

from dataclasses import replace

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import Quantity
from kdsl.cluster.devices.pods import DeviceContainer, Phase
from kdsl.cluster.objects.pod import PodInfo


def with_more(pod: PodInfo, resource: str, difference: int) -> tuple[DeviceContainer, ...]:
    """Return a pod's device containers with `difference` more of a resource in the first container that
    requests it. If none does, the first container that is no init container gets the request.

    No request becomes negative. Only extended resources are a device's.
    """
    if "/" not in resource:
        return pod.device_containers
    containers = pod.device_containers or tuple(DeviceContainer(each.name) for each in pod.containers)
    asking = [at for at, each in enumerate(containers) if resource in each.amounts]
    running = [at for at, each in enumerate(containers) if each.phase is Phase.APP]
    chosen = next(iter(asking or running), None)
    return tuple(
        _with_more(each, resource, difference) if at == chosen else each for at, each in enumerate(containers)
    )


def _with_more(container: DeviceContainer, resource: str, difference: int) -> DeviceContainer:
    amount = Quantity.of(max(0, container.amounts.get(resource, 0) + difference))
    limits = FrozenMap({**container.limits, resource: amount})
    # An extended resource that is requested has an equal limit.
    is_requested = resource in container.requests
    requests = FrozenMap({**container.requests, resource: amount}) if is_requested else container.requests
    return replace(container, limits=limits, requests=requests)

"""The resource requests of a pod: kube-scheduler's formula, in four variants.

`pod` computes them once for each pod.

For each resource, of containers, sidecars (restartable init containers) and plain init containers (1.36):

    sum     = all containers + all sidecars
    start   = the most that start-up needs: for each init container in order, the sidecars so far and itself
    request = max(sum, start), replaced by the pod-level request where there is one, plus overhead

The variants differ in the source of container amounts (the spec, or the kubelet's report during a resize) and
in the amount of a container without cpu or memory: nothing, or the default of `pod_defaults.yaml`, so that
scores distinguish crowded nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from kdsl.base.quantity import Quantity
from kdsl.base.resources import CPU, HUGE_PAGES, MEMORY, Resources, canonical_nanos, capped, shared
from kdsl.cluster.api.objects import (
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    ResourceList,
    ResourceRequirements,
    WrittenQuantity,
    quantity,
)
from kdsl.cluster.objects.pod_defaults import pod_defaults

ASSUMED: Final[ResourceList] = pod_defaults().scored_requests
"""The request that scores assume for a container without one; as shipped for cpu and memory."""

_POD_LEVEL: Final = (CPU, MEMORY)
_ALWAYS: Final = "Always"

MAX_SHARED: Final = 4096
"""So many sets of amounts are remembered: pods of one workload are computed once."""

Nanos = dict[str, int]
_Amounts: TypeAlias = tuple[tuple[str, WrittenQuantity], ...]
_Containers: TypeAlias = tuple[tuple[str, _Amounts], ...]


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The requests of one pod, in four variants.

    `requests` and `scored` are those of a pending pod, from its spec; `scored` ignores pod-level requests, as
    in kube-scheduler. `usage` and `scored_usage` are its amounts on its node: during a resize the larger
    amount counts. With pod-level requests, defaults apply only to resources that neither the pod nor a
    container names.
    """

    requests: Resources
    scored: Resources
    usage: Resources
    scored_usage: Resources


def pod_requests(pod: Pod) -> PodRequests:
    """Compute all variants of the requests of `pod`, which must have its defaults."""
    spec = pod.spec
    resized = _resized_containers(pod)
    if resized or pod.status.resources is not None:
        return _readings(pod, resized)
    return _plain_readings(
        _amounts_of(spec.containers),
        _amounts_of(spec.init_containers),
        tuple(spec.resources.requests.items()),
        tuple(spec.overhead.items()),
    )


def _amounts_of(containers: Iterable[Container]) -> _Containers:
    return tuple([(one.restart_policy, tuple(one.resources.requests.items())) for one in containers])


@lru_cache(MAX_SHARED)
def _plain_readings(
    containers: _Containers, init_containers: _Containers, pod_level: _Amounts, overhead: _Amounts
) -> PodRequests:
    """Compute the readings of a pod of which the kubelet reports nothing else than its spec says."""
    spec = PodSpec(
        containers=_with_amounts(containers),
        init_containers=_with_amounts(init_containers),
        resources=ResourceRequirements(requests=dict(pod_level)),
        overhead=dict(overhead),
    )
    return _readings(Pod(spec=spec), {})


def _with_amounts(containers: _Containers) -> list[Container]:
    return [
        Container(restart_policy=policy, resources=ResourceRequirements(requests=dict(amounts)))
        for policy, amounts in containers
    ]


def _readings(pod: Pod, resized: Mapping[str, ResourceList]) -> PodRequests:
    spec = pod.spec
    has_pod_level = any(map(is_pod_level_resource, spec.resources.requests))

    requests = _total(spec, {}, {}, spec.resources.requests)
    scored = _total(spec, {}, ASSUMED, {})
    if resized or pod.status.resources is not None:
        pod_level = _resized_pod_level(pod)
        usage = _total(spec, resized, {}, pod_level)
    else:
        pod_level, usage = spec.resources.requests, requests
    if has_pod_level:
        missing = {name: amount for name, amount in ASSUMED.items() if name not in usage}
        scored_usage = _total(spec, resized, missing, pod_level) if missing else usage
    elif resized:
        scored_usage = _total(spec, resized, ASSUMED, {})
    else:
        scored_usage = scored

    counted = _counted(requests)
    counted_scored = _counted(scored)
    return PodRequests(
        counted,
        counted_scored,
        counted if usage is requests else _counted(usage),
        counted_scored if scored_usage is scored else _counted(scored_usage),
    )


def container_requests(spec: PodSpec) -> ResourceList:
    """Return the total request of the containers of `spec`, without pod-level requests and overhead."""
    return {name: str(Quantity.capped(nanos)) for name, nanos in _aggregate(spec, {}, {}).items()}


def is_pod_level_resource(name: str) -> bool:
    """Return whether resource `name` can be requested at pod level."""
    return name in _POD_LEVEL or name.startswith(HUGE_PAGES)


def _total(
    spec: PodSpec,
    resized: Mapping[str, ResourceList],
    assumed: ResourceList,
    pod_level: ResourceList,
) -> Nanos:
    total = _aggregate(spec, resized, assumed)
    for name, written in pod_level.items():
        if is_pod_level_resource(name):
            total[name] = quantity(written).nanos
    _add(total, spec.overhead)
    return total


def _aggregate(spec: PodSpec, resized: Mapping[str, ResourceList], assumed: ResourceList) -> Nanos:
    """Apply the formula to the containers; exact, in thousand-millionths, since rounding comes last."""
    total: Nanos = {}
    for container in spec.containers:
        _add(total, _of_container(container, resized, assumed))
    sidecars: Nanos = {}
    start: Nanos = {}
    for container in spec.init_containers:
        amounts = _of_container(container, resized, assumed)
        if container.restart_policy == _ALWAYS:
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(start, sidecars)
        else:
            needed = sidecars.copy()
            _add(needed, amounts)
            _raise(start, needed)
    _raise(total, start)
    return total


def _of_container(
    container: Container, resized: Mapping[str, ResourceList], assumed: ResourceList
) -> ResourceList:
    amounts = (
        resized.get(container.name, container.resources.requests) if resized else container.resources.requests
    )
    return {**assumed, **amounts} if assumed else amounts


def _add(total: Nanos, amounts: ResourceList) -> None:
    for name, written in amounts.items():
        total[name] = total.get(name, 0) + quantity(written).nanos


def _raise(total: Nanos, other: Nanos) -> None:
    for name, nanos in other.items():
        if nanos > total.get(name, -1):
            total[name] = nanos


def _counted(total: Nanos) -> Resources:
    """Round up to canonical units; sums beyond int64 count as the largest amount."""
    return shared(Resources({name: capped(canonical_nanos(name, nanos)) for name, nanos in total.items()}))


def _resized_containers(pod: Pod) -> dict[str, ResourceList]:
    """Return the amounts of the containers and sidecars for which the kubelet reports resources, by name.

    Empty if all reports equal the spec, as for nearly all pods.
    """
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    infeasible = _is_resize_infeasible(pod)
    sidecars = [one for one in pod.spec.init_containers if one.restart_policy == _ALWAYS]
    found: dict[str, ResourceList] = {}
    differs = False
    for containers, statuses in (
        (pod.spec.containers, status.container_statuses),
        (sidecars, status.init_container_statuses),
    ):
        reported = {one.name: one for one in statuses}
        for container in containers:
            amounts = _reported(container, reported.get(container.name), infeasible)
            # An empty report counts too: the container has nothing, and will get nothing if infeasible.
            if amounts is not None:
                found[container.name] = amounts
                differs = differs or amounts is not container.resources.requests
    return found if differs else {}


def _reported(container: Container, status: ContainerStatus | None, infeasible: bool) -> ResourceList | None:
    if status is None or status.resources is None:
        return None
    wanted, reported, allocated = (
        container.resources.requests, status.resources.requests, status.allocated_resources,
    )  # fmt: skip
    if reported == wanted and (allocated == wanted or not allocated):
        return wanted
    lists = [reported, allocated]
    return _largest(lists if infeasible else [wanted, *lists])


def _resized_pod_level(pod: Pod) -> ResourceList:
    wanted, status = pod.spec.resources.requests, pod.status
    if not wanted or status.resources is None:
        return wanted
    lists = [status.resources.requests, status.allocated_resources]
    return _largest(lists if _is_resize_infeasible(pod) else [wanted, *lists])


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _largest(lists: Iterable[ResourceList]) -> ResourceList:
    largest: ResourceList = {}
    for amounts in lists:
        for name, written in amounts.items():
            if name not in largest or quantity(written) > quantity(largest[name]):
                largest[name] = written
    return largest

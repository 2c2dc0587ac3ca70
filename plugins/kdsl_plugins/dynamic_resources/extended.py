"""The requests for devices that stand for the extended resources of a pod's containers.

Containers that run at the same time have devices of their own. An init container uses the devices of
containers that start after it, and those of other init containers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kdsl.cluster.api.device_objects import EXACT_COUNT, ClaimRequest, DeviceClass, DeviceRequest
from kdsl.cluster.resource_claims.extended_claims import RequestMapping

if TYPE_CHECKING:
    from kdsl.cluster.objects.containers import Container
    from kdsl.cluster.objects.pod import PodInfo

_ALWAYS: Final = "Always"


class ExtendedRequests(NamedTuple):
    """The requests, by name, and the containers that use their devices."""

    requests: tuple[ClaimRequest, ...]
    mappings: tuple[RequestMapping, ...]


class _Need(NamedTuple):
    """A request for devices of one resource."""

    name: str
    amount: int


class _Share(NamedTuple):
    """The own request of a container, None where it needs none, and the names of all requests whose devices
    it uses.
    """

    container: str
    need: _Need | None
    names: tuple[str, ...]


def extended_requests(
    pod: PodInfo, resources: Sequence[str], classes: Mapping[str, DeviceClass]
) -> ExtendedRequests:
    """Return the requests for resources of a pod; `classes` offer them."""
    requests: list[ClaimRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        shares = _shares(pod, resource)
        needs = {share.need.name: share.need.amount for share in shares if share.need is not None}
        name = classes[resource].metadata.name
        requests += (ClaimRequest(each, _exactly(name, count)) for each, count in needs.items())
        mappings += (RequestMapping(one.container, resource, each) for one in shares for each in one.names)
    return ExtendedRequests(tuple(sorted(requests, key=lambda each: each.name)), tuple(mappings))


def _exactly(device_class: str, count: int) -> DeviceRequest:
    return DeviceRequest(device_class_name=device_class, allocation_mode=EXACT_COUNT, count=count)


def _shares(pod: PodInfo, resource: str) -> list[_Share]:
    """Return the shares of the containers that name a resource; init containers that end come last."""
    containers = (*pod.init_containers, *pod.containers)
    ending = [at for at, each in enumerate(pod.init_containers) if each.restart_policy != _ALWAYS]
    staying = {at: _share(at, each, resource) for at, each in enumerate(containers) if at not in ending}
    first = [
        _share(at, containers[at], resource, [one.need for place, one in staying.items() if place > at])
        for at in ending
    ]
    return [share for share in chain(staying.values(), _merged(first)) if share.names]


def _share(at: int, container: Container, resource: str, usable: Sequence[_Need | None] = ()) -> _Share:
    """Return the share of a container, which first uses the devices of the `usable` requests."""
    amount = container.requests.amount(resource)
    names: list[str] = []
    for need in usable:
        if amount > 0 and need is not None:
            amount -= need.amount
            names.append(need.name)
    if amount <= 0:
        return _Share(container.name, None, tuple(names))
    place = sorted(container.requests.amounts()).index(resource)
    own = _Need(f"container-{at}-request-{place}", amount)
    return _Share(container.name, own, (*names, own.name))


def _merged(shares: Sequence[_Share]) -> Iterator[_Share]:
    """Yield shares of containers that run one after the other: the largest own request serves all."""
    needs = [share.need for share in shares if share.need is not None]
    if not needs:
        yield from shares
        return
    largest = max(needs, key=lambda each: each.amount)
    for share in shares:
        own = None if share.need is None else share.need.name
        names = tuple(largest.name if name == own else name for name in share.names)
        yield share._replace(need=None if own is None else largest, names=names)

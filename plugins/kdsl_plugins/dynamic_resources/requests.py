"""The requests of claims that wait for devices, read once for all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kdsl.cluster.api.device_objects import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
)
from kdsl.cluster.objects.taints import Taint, Toleration

from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError

_REPELLING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Selector:
    """A condition; `owner` is the class or claim that writes it, at place `at`."""

    text: str
    owner: str
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request for devices of a class, or an alternative of one: then `parent` is the name of the request.

    `full_name` is its name in results. Alternatives have no access of administrators. `problem` is why the
    request cannot be met on any node, empty where it may be.
    """

    claim: str
    name: str
    parent: str
    spec: DeviceRequest
    device_class: DeviceClass
    selectors: tuple[Selector, ...]
    tolerations: tuple[Toleration, ...]
    full_name: str
    is_for_all: bool
    has_admin_access: bool
    count: int
    problem: str

    def tolerates(self, device: PoolDevice) -> bool:
        """Return whether the request may get a device with its taints; other effects repel nobody."""
        return all(
            any(each.tolerates(Taint(one.key, one.value, one.effect)) for each in self.tolerations)
            for one in device.device.taints
            if one.effect in _REPELLING
        )

    def fail(self, problem: str) -> AllocationError:
        """Return an error of this request."""
        return AllocationError(f"claim {self.claim}, request {self.name}: {problem}")


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequests:
    """The requests of a claim: each one has its alternatives, or one without a parent."""

    claim: ResourceClaim
    key: str
    requests: tuple[tuple[Request, ...], ...]

    @staticmethod
    def of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> ClaimRequests:
        """Read a claim."""
        meta = claim.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        found = []
        for each in claim.spec.devices.requests:
            if each.first_available:
                found.append(
                    tuple(_request(key, one.name, each.name, one, classes) for one in each.first_available)
                )
            else:
                found.append((_request(key, each.name, "", each.exactly or DeviceRequest(), classes),))
        return ClaimRequests(claim, key, tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class PodRequests:
    """The requests of all claims of a pod, with the conditions in them and the attributes that constraints
    compare.
    """

    claims: tuple[ClaimRequests, ...]
    conditions: tuple[str, ...]
    attributes: tuple[str, ...]

    def ends(self) -> Iterator[PodRequests]:
        """Yield the requests from each but the first on, the fewest first.

        A node that cannot meet these cannot meet all: requests only take devices from each other.
        """
        for at, claim in reversed(list(enumerate(self.claims))):
            for start in reversed(range(len(claim.requests))):
                if at or start:
                    first = replace(claim, requests=claim.requests[start:])
                    yield replace(self, claims=(first, *self.claims[at + 1 :]))

    @staticmethod
    def of(claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass]) -> PodRequests:
        """Read the claims of a pod."""
        read = tuple(ClaimRequests.of(claim, classes) for claim in claims)
        requests = [one for claim in read for alternatives in claim.requests for one in alternatives]
        constraints = [one for claim in read for one in claim.claim.spec.devices.constraints]
        names = (name for one in constraints for name in (one.match_attribute, one.distinct_attribute))
        return PodRequests(
            claims=read,
            conditions=tuple(dict.fromkeys(each.text for one in requests for each in one.selectors)),
            attributes=tuple(dict.fromkeys(name for name in names if name is not None)),
        )


def _request(
    claim: str, name: str, parent: str, spec: DeviceRequest, classes: Mapping[str, DeviceClass]
) -> Request:
    device_class = classes.get(spec.device_class_name, DeviceClass())
    of_class = f"class {device_class.metadata.name}"
    return Request(
        claim=claim,
        name=name,
        parent=parent,
        spec=spec,
        device_class=device_class,
        selectors=(
            *_selectors(device_class.spec.selectors, of_class),
            *_selectors(spec.selectors, f"claim {claim}"),
        ),
        tolerations=tuple(
            Toleration(one.key, one.operator, one.value, one.effect) for one in spec.tolerations
        ),
        full_name=f"{parent}/{name}" if parent else name,
        is_for_all=spec.allocation_mode == ALL_DEVICES,
        has_admin_access=spec.admin_access and not parent,
        # The API's default where none is written.
        count=spec.count or 1,
        problem=_problem(spec, device_class, classes),
    )


def _selectors(selectors: Sequence[DeviceSelector], owner: str) -> tuple[Selector, ...]:
    return tuple(
        Selector(each.cel.expression, owner, at) for at, each in enumerate(selectors) if each.cel is not None
    )


def _problem(spec: DeviceRequest, device_class: DeviceClass, classes: Mapping[str, DeviceClass]) -> str:
    unknown = next((at for at, each in enumerate(spec.selectors) if each.cel is None), None)
    if unknown is not None:
        return f"selector #{unknown}: CEL expression empty (unsupported selector type?)"
    name = spec.device_class_name
    if not name:
        return "missing device class name (unsupported request type?)"
    if name not in classes:
        reason = f'deviceclass.resource.k8s.io "{name}" not found'
        return f"could not retrieve device class {name}: {reason}"
    if any(each.cel is None for each in device_class.spec.selectors):
        return f"device class {name} has a selector of an unknown type"
    if spec.count < 0:
        return f"exact count {spec.count} is below zero"
    if spec.allocation_mode not in ("", EXACT_COUNT, ALL_DEVICES):
        return f"unsupported count mode {spec.allocation_mode}"
    return ""

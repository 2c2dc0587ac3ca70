"""The cards that containers request, and those that they get."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import encode
from kdsl.cluster.devices.pods import DeviceContainer, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import Quota


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The request of one container for one kind of device. Fields are those of the `DeviceRequest` view."""

    kind: str
    count: int = 0
    memory: int = 0
    percent: int = 0
    cores: int = 0


Requests = tuple[Mapping[str, DeviceRequest], ...]
"""The requests of each container, by kind."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod that requests cards, after admission.

    Pods of one `signature` get the same cards of a node. `pod_signature` is the part of it without
    containers, requests and quota: the fields of the pod that devices read, and the policy.
    """

    pod: DevicePod
    requests: Requests
    policy: Policy
    quota: Quota | None
    signature: Hashable
    pod_signature: Hashable
    read: dict[str, Hashable] = field(default_factory=dict, compare=False)
    """For each kind, once computed: the part of the pod that identity tests read."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of devices that the pod requests."""
        return tuple(dict.fromkeys(kind for requests in self.requests for kind in requests))


@dataclass(frozen=True, slots=True)
class Allotment:
    """The cards of one kind for one container. Fields are those of the `DeviceAllotment` view."""

    container: DeviceContainer
    request: DeviceRequest
    cards: tuple[DeviceGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class Allocation:
    """The cards of one kind for a pod: the view `DeviceAllocation`."""

    containers: tuple[Allotment, ...]

    @property
    def cards(self) -> tuple[DeviceGrant, ...]:
        return tuple(grant for allotment in self.containers for grant in allotment.cards)

    @property
    def text(self) -> str:
        return encode(allotment.cards for allotment in self.containers)

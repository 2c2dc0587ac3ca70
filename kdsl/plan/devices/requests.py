"""The cards that containers request, and those that they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import encode
from kdsl.cluster.devices.pods import DeviceContainer


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

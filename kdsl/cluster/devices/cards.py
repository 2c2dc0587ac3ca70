"""Cards as values: the cards of a node, their usage, and the grants of containers.

Amounts are HAMi's: memory in MiB, compute in the unit of the card, all within 32 bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from kdsl.base.frozen_map import FrozenMap

INT32_MAX: Final = 2**31 - 1

Shape = tuple[Hashable, ...]
"""`Card.shape`."""

Attributes = Mapping[str, Any]
"""The values that an inventory has of a card beside the fields of all cards."""
NO_ATTRIBUTES: Final[Attributes] = FrozenMap()


_SHAPE: Final = attrgetter(
    *("kind", "type", "slots", "memory", "cores", "index", "numa", "mode", "healthy"),
    *("used", "used_memory", "used_cores"),
)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod with a part of a card. Fields are those of the `DeviceTenant` view."""

    name: str
    namespace: str
    annotations: Mapping[str, str] = field(repr=False)
    memory: int
    cores: int


class Card(Struct, frozen=True):
    """A card with its usage. Fields are those of the `Device` view.

    Not a dataclass: a cluster has tens of thousands of cards, and a struct is made five times as fast.
    """

    id: str
    kind: str
    type: str
    slots: int
    memory: int
    cores: int
    index: int = 0
    numa: int = 0
    mode: str = ""
    healthy: bool = True
    attributes: Attributes = NO_ATTRIBUTES
    used: int = 0
    used_memory: int = 0
    used_cores: int = 0
    tenants: tuple[Tenant, ...] = ()
    shape: Shape = ()
    """Made by the card itself: all fields but the name, the attributes and the identity of tenants."""

    def __post_init__(self) -> None:
        force_setattr(self, "shape", (*_SHAPE(self), len(self.tenants)))

    def with_attributes(self, attributes: Attributes) -> Card:
        """Return the card with other attributes."""
        return replace(self, attributes=attributes)

    def with_usage(self, slots: int, memory: int, cores: int, tenants: tuple[Tenant, ...] = ()) -> Card:
        """Return the card with more usage."""
        return replace(
            self,
            used=self.used + slots,
            used_memory=self.used_memory + memory,
            used_cores=self.used_cores + cores,
            tenants=(*self.tenants, *tenants),
        )


@dataclass(frozen=True, slots=True)
class DeviceGrant:
    """The part of a card for a container. Fields are those of the `DeviceGrant` view.

    `index` and `attributes` are the card's; they are not recorded, so a decoded grant has none.
    """

    id: str
    type: str
    memory: int
    cores: int
    slots: int = 1
    index: int = 0
    attributes: Attributes = field(default_factory=dict)

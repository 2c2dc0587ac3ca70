"""Cards as values: the cards of a node, their usage, and the grants of containers.

Amounts are HAMi's: memory in MiB, compute in the unit of the card, all within 32 bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

INT32_MAX: Final = 2**31 - 1

Shape = tuple[Hashable, ...]
"""`Card.shape`."""

Attributes = Mapping[str, Any]
"""The values that an inventory has of a card beside the fields of all cards."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod with a part of a card. Fields are those of the `DeviceTenant` view."""

    name: str
    namespace: str
    annotations: Mapping[str, str] = field(repr=False)
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class Card:
    """A card with its usage. Fields are those of the `Device` view."""

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
    attributes: Attributes = field(default_factory=dict)
    used: int = 0
    used_memory: int = 0
    used_cores: int = 0
    tenants: tuple[Tenant, ...] = ()
    shape: Shape = field(init=False, repr=False, compare=False)
    """All fields but the name, the attributes and the identity of tenants."""

    def __post_init__(self) -> None:
        shape = (
            self.kind,
            self.type,
            self.slots,
            self.memory,
            self.cores,
            self.index,
            self.numa,
            self.mode,
            self.healthy,
            self.used,
            self.used_memory,
            self.used_cores,
            len(self.tenants),
        )
        object.__setattr__(self, "shape", shape)

    def with_usage(self, slots: int, memory: int, cores: int, tenants: tuple[Tenant, ...] = ()) -> Card:
        """Return the card with more usage."""
        return Card(
            self.id,
            self.kind,
            self.type,
            self.slots,
            self.memory,
            self.cores,
            self.index,
            self.numa,
            self.mode,
            self.healthy,
            self.attributes,
            self.used + slots,
            self.used_memory + memory,
            self.used_cores + cores,
            (*self.tenants, *tenants),
        )


@dataclass(frozen=True, slots=True)
class Grant:
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

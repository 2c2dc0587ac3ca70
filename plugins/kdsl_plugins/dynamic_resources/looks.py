"""Devices that have equal values in the attributes that are read: they are decided about once.

Numbers and answers stay valid as long as the slices do.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from kdsl.base.bounded_dict import BoundedDict
from kdsl.cluster.api.device_objects import DeviceAttribute

from kdsl_plugins.dynamic_resources.devices import PoolDevice, qualified
from kdsl_plugins.dynamic_resources.kinds import kind_of

if TYPE_CHECKING:
    from kdsl.hooks.context import DeviceAnswer

    from kdsl_plugins.dynamic_resources.pools import Pool

Attributes = frozenset[tuple[str, str]] | None
"""Attributes by domain and name; None for all."""

MAX_ANSWERS: Final = 50_000
"""The most answers of conditions that are kept for one set of attributes; then all are forgotten."""


class Looks:
    """Numbers devices by all that can be read of them, of attributes only some.

    `constrained` are names of attributes as constraints write them.
    """

    def __init__(self, attributes: Attributes, constrained: tuple[str, ...] = ()) -> None:
        self._attributes = None if attributes is None else tuple(sorted(attributes))
        self._constrained = constrained
        self._numbers: dict[object, int] = {}
        self._next = count()
        self._of: dict[PoolDevice, int] = {}
        self._pools: dict[Pool, tuple[int, ...]] = {}
        self._answers: BoundedDict[tuple[str, int], DeviceAnswer] = BoundedDict(MAX_ANSWERS)

    def __len__(self) -> int:
        return len(self._of)

    def of(self, device: PoolDevice) -> int:
        """Return the number of a device."""
        number = self._of.get(device)
        if number is None:
            # A number is never given twice, though several threads ask.
            number = self._of[device] = self._numbers.setdefault(self._seen(device), next(self._next))
        return number

    def of_pool(self, pool: Pool) -> tuple[int, ...]:
        """Return the numbers of all devices of a pool."""
        numbers = self._pools.get(pool)
        if numbers is None:
            numbers = self._pools[pool] = tuple(map(self.of, pool.devices))
        return numbers

    def kept(self, text: str, look: int) -> DeviceAnswer | None:
        """Return the kept answer of a condition that reads no other attributes."""
        return self._answers.get((text, look))

    def keep(self, text: str, look: int, answer: DeviceAnswer) -> None:
        """Keep the answer of a condition for devices of this number."""
        self._answers.keep((text, look), answer)

    def _seen(self, device: PoolDevice) -> tuple[object, ...]:
        thing, spec = device.device, device.slice.spec
        own = thing.attributes
        # A later attribute of the same name replaces an earlier one, as in the view of the device.
        known = {qualified(name, spec.driver): value for name, value in own.items()}
        read = tuple(known.items()) if self._attributes is None else tuple(map(known.get, self._attributes))
        terms = 0 if spec.node_selector is None else len(spec.node_selector.node_selector_terms)
        return (
            spec.driver,
            read,
            # A version that cannot be read fails all conditions.
            tuple((name, one.version) for name, one in own.items() if _is_parsed(one)),
            tuple(thing.capacity),
            kind_of(device, self._constrained),
            # Whether its nodes can be written into an allocation.
            terms > 1 and not (spec.node_name or thing.binds_to_node),
            bool(spec.node_name or thing.binds_to_node),
        )


def _is_parsed(attribute: DeviceAttribute) -> bool:
    return attribute.integer is None and attribute.boolean is None and attribute.string is None

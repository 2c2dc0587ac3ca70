"""A device of a pool, as requests, constraints and conditions read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kdsl.base.quantity import Quantity
from kdsl.base.semver import parse_semver
from kdsl.cluster.api.device_objects import Device, DeviceAttribute, ResourceSlice
from kdsl.cluster.api.objects import quantity

from kdsl_plugins.dynamic_resources.amounts import read, total

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""

_NO_COUNTERS: Final[Mapping[tuple[str, str], Quantity]] = {}


class PoolDevice:
    """A device with the slice that reports it, and the counters that it uses up. One that `is_whole` is not
    shared, and no policy says how much of it a request gets.
    """

    __slots__ = ("_view", "device", "id", "is_whole", "slice", "uses")

    def __init__(self, thing: ResourceSlice, device: Device) -> None:
        self.slice, self.device = thing, device
        self.id: DeviceId = (thing.spec.driver, thing.spec.pool.name, device.name)
        self.uses: Mapping[tuple[str, str], Quantity] = _consumption(device)
        self.is_whole = not device.allow_multiple_allocations and all(
            one.request_policy is None for one in device.capacity.values()
        )
        self._view: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return "/".join(self.id)

    @property
    def pool(self) -> tuple[str, str]:
        """The driver and name of its pool."""
        return self.id[:2]

    @property
    def view(self) -> Mapping[str, Any]:
        """The value of `device` in conditions; ValueError where an attribute cannot be read."""
        if self._view is None:
            self._view = view_of(self.slice.spec.driver, self.device)
        return self._view

    def attribute(self, name: str) -> DeviceAttribute | None:
        """Return an attribute by its full name; names of the driver's own domain may be written without."""
        found = self.device.attributes.get(name)
        domain, slash, rest = name.partition("/")
        if found is None and slash and domain == self.id[0]:
            return self.device.attributes.get(rest)
        return found


def view_of(driver: str, device: Device) -> Mapping[str, Any]:
    """Return a device as conditions read it: names without a domain belong to the driver's."""
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, own = qualified(name, driver)
        attributes.setdefault(domain, {})[own] = _value(name, attribute)
    capacity: dict[str, dict[str, Quantity]] = {}
    for name, amount in device.capacity.items():
        domain, own = qualified(name, driver)
        capacity.setdefault(domain, {})[own] = quantity(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Return the domain of an attribute or capacity, and its name there."""
    domain, slash, own = name.partition("/")
    return (domain, own) if slash else (driver, name)


def _value(name: str, attribute: DeviceAttribute) -> int | bool | str | object:
    for value in (attribute.integer, attribute.boolean, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise ValueError(f"attribute {name}: unsupported attribute value")
    try:
        return parse_semver(attribute.version)
    except ValueError as error:
        raise ValueError(f"attribute {name}: parse semantic version: {error}") from error


def _consumption(device: Device) -> Mapping[tuple[str, str], Quantity]:
    """Return the counters that a device uses up, summed where it names one twice."""
    if not device.consumes_counters:
        return _NO_COUNTERS
    uses: dict[tuple[str, str], Quantity] = {}
    for each in device.consumes_counters:
        for name, counter in each.counters.items():
            key, what = (each.counter_set, name), f"device {device.name}, counter {name}"
            amount = read(counter.value, what)
            uses[key] = total(uses[key], amount, what) if key in uses else amount
    return uses

"""Kinds of devices: two of one kind can stand for each other in any allocation, and a search tries one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.base.quantity import Quantity

from kdsl_plugins.dynamic_resources.constraints import compared
from kdsl_plugins.dynamic_resources.devices import PoolDevice


def kind_of(device: PoolDevice, attributes: Iterable[str]) -> tuple[object, ...]:
    """Return the facts of a device that a search compares: taints, capacity, counters, and the attributes of
    constraints.
    """
    thing = device.device
    capacity = tuple(
        (name, one.value, repr(one.request_policy)) for name, one in sorted(thing.capacity.items())
    )
    return (
        tuple(compared(device.attribute(name)) for name in attributes),
        tuple((one.key, one.value, one.effect) for one in thing.taints),
        thing.allow_multiple_allocations,
        capacity,
        # Counters belong to a pool.
        (device.pool, frozenset(device.uses.items())) if device.uses else None,
    )


def frozen(amounts: Mapping[str, Quantity] | None) -> object:
    """Return amounts in a form that has a hash."""
    return None if amounts is None else frozenset(amounts.items())

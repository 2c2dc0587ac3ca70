"""The counters that the devices of a search use up, beside those of devices in use."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.base.quantity import ZERO, Quantity

from kdsl_plugins.dynamic_resources.amounts import rest, total
from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.pools import Pool
from kdsl_plugins.dynamic_resources.usage import Usage


class CountersInSearch:
    """The counters of the pools of a node."""

    def __init__(self, pools: Iterable[Pool], usage: Usage) -> None:
        self._pools = {(pool.driver, pool.name): pool for pool in pools}
        self._usage = usage
        self._used: dict[tuple[str, str], dict[tuple[str, str], Quantity]] = {}

    def has(self, device: PoolDevice) -> bool:
        """Return whether the pool has the counters that a device uses up."""
        left = self._usage.counters_left(self._pools[device.pool])
        used = self._used.get(device.pool, {})
        for key, amount in device.uses.items():
            if key not in left or total(amount, used.get(key, ZERO), _name(key)) > left[key]:
                return False
        return True

    def take(self, device: PoolDevice) -> None:
        """Use up the counters of a device."""
        used = self._used.setdefault(device.pool, {})
        for key, amount in device.uses.items():
            used[key] = total(used.get(key, ZERO), amount, _name(key))

    def give_back(self, device: PoolDevice) -> None:
        """Undo `take`."""
        used = self._used[device.pool]
        for key, amount in device.uses.items():
            used[key] = rest(used[key], amount, _name(key))


def _name(key: tuple[str, str]) -> str:
    return f"counter {key[1]} of {key[0]}"

"""What allocated claims use up: devices, the capacity of shared devices, and counters of pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.device_objects import ResourceClaim

from kdsl_plugins.dynamic_resources.amounts import read, rest, total
from kdsl_plugins.dynamic_resources.devices import DeviceId, PoolDevice
from kdsl_plugins.dynamic_resources.pools import Counters, Pool

Capacity = Mapping[str, Quantity]


class Usage:
    """The devices in use. `shared` has the used capacity of devices that several claims share; results with
    administrator access use up nothing.
    """

    def __init__(self, claims: Iterable[ResourceClaim]) -> None:
        self.devices: set[DeviceId] = set()
        self.shared: dict[DeviceId, dict[str, Quantity]] = {}
        self._left: dict[Pool, Counters] = {}
        self._free: dict[Pool, list[PoolDevice]] = {}
        for claim in claims:
            allocation = claim.status.allocation
            if allocation is None:
                continue
            for result in allocation.devices.results:
                if result.admin_access:
                    continue
                device = (result.driver, result.pool, result.device)
                if not result.share_id:
                    self.devices.add(device)
                    continue
                used = self.shared.setdefault(device, {})
                for name, written in result.consumed_capacity.items():
                    what = f"claim {claim.metadata.namespace}/{claim.metadata.name}, capacity {name}"
                    amount = read(written, what)
                    used[name] = total(used[name], amount, what) if name in used else amount

    def has(self, device: DeviceId) -> bool:
        return device in self.devices or device in self.shared

    def free(self, pool: Pool) -> list[PoolDevice]:
        """Return the devices of a pool that no claim has for itself."""
        free = self._free.get(pool)
        if free is None:
            free = self._free[pool] = [each for each in pool.devices if each.id not in self.devices]
        return free

    def counters_left(self, pool: Pool) -> Counters:
        """Return the counters of a pool without those of its devices in use; none at all where one is used
        up beyond its amount.
        """
        left = self._left.get(pool)
        if left is None:
            amounts = dict(pool.counters)
            for device in (*pool.devices, *pool.elsewhere):
                if device.uses and self.has(device.id):
                    for key, amount in device.uses.items():
                        amounts[key] = rest(amounts[key], amount, f"pool {pool}, counter {key[1]}")
            is_overdrawn = any(amount.nanos < 0 for amount in amounts.values())
            left = self._left[pool] = {} if is_overdrawn else amounts
        return left

"""The usage of allocated claims: devices, capacity of shared devices, and counters of pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kdsl.base.change_log import ChangeLog
from kdsl.base.counts import change_count
from kdsl.base.quantity import Quantity
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.snapshot.catalog import key_of

from kdsl_plugins.dynamic_resources.amounts import read, rest, total
from kdsl_plugins.dynamic_resources.devices import DeviceId, PoolDevice
from kdsl_plugins.dynamic_resources.pools import Counters, Pool, PoolKey

Capacity = Mapping[str, Quantity]


class Usage:
    """The devices in use; results with administrator access use up nothing.

    `devices` counts the claims that have a device for themselves, `changes` is the log of pools whose devices
    came into use or became free. It follows the claims of a cluster.
    """

    def __init__(self, claims: Iterable[ResourceClaim] = ()) -> None:
        self.devices: Counter[DeviceId] = Counter()
        self.changes: ChangeLog[PoolKey] = ChangeLog()
        self._claims: dict[str, ResourceClaim] = {}
        self._sharing: dict[str, ResourceClaim] = {}
        self._shared: dict[DeviceId, dict[str, Quantity]] | None = None
        self._in_pool: Counter[PoolKey] = Counter()
        self._left: dict[PoolKey, dict[Pool, Counters]] = {}
        self._free: dict[PoolKey, dict[Pool, tuple[PoolDevice, ...]]] = {}
        self.follow({str(at): claim for at, claim in enumerate(claims)})

    def follow(self, claims: Mapping[str, ResourceClaim | None]) -> None:
        """Update from claims by key that may have changed; None stands for one that is gone."""
        for key, claim in claims.items():
            if self._claims.get(key) is not claim:
                self._replace(key, claim)

    @property
    def claims(self) -> Mapping[str, ResourceClaim]:
        """The claims that are included, by key."""
        return self._claims

    @property
    def shared(self) -> Mapping[DeviceId, Capacity]:
        """The used capacity of devices that several claims share; AllocationError where it cannot be read."""
        if self._shared is None:
            self._shared = _shared(self._sharing.values())
        return self._shared

    def has(self, device: DeviceId) -> bool:
        return device in self.devices or device in self.shared

    def holders(self) -> dict[DeviceId, list[str]]:
        """Return the keys of the claims that have a device for themselves."""
        found: dict[DeviceId, list[str]] = {}
        for claim in self._claims.values():
            for result in () if claim.status.allocation is None else claim.status.allocation.devices.results:
                if not result.admin_access and not result.share_id:
                    found.setdefault((result.driver, result.pool, result.device), []).append(key_of(claim))
        return found

    def free(self, pool: Pool) -> tuple[PoolDevice, ...]:
        """Return the devices of a pool that no claim has for itself."""
        if pool.key not in self._in_pool:
            return pool.devices
        known = self._free.setdefault(pool.key, {})
        free = known.get(pool)
        if free is None:
            free = known[pool] = tuple(each for each in pool.devices if each.id not in self.devices)
        return free

    def counters_left(self, pool: Pool) -> Counters:
        """Return the counters of a pool without those of its devices in use; none at all where one is used
        up beyond its amount.
        """
        known = self._left.setdefault(pool.key, {})
        left = known.get(pool)
        if left is None:
            amounts = dict(pool.counters)
            for device in (*pool.devices, *pool.elsewhere):
                if device.uses and self.has(device.id):
                    for key, amount in device.uses.items():
                        amounts[key] = rest(amounts[key], amount, f"pool {pool}, counter {key[1]}")
            is_overdrawn = any(amount.nanos < 0 for amount in amounts.values())
            left = known[pool] = {} if is_overdrawn else amounts
        return left

    def _replace(self, key: str, claim: ResourceClaim | None) -> None:
        before = self._claims.pop(key, None)
        if before is not None:
            self._count(key, before, -1)
        if claim is not None:
            self._claims[key] = claim
            self._count(key, claim, 1)

    def _count(self, key: str, claim: ResourceClaim, by: int) -> None:
        """Count the devices of a claim, or take them from the count again."""
        allocation = claim.status.allocation
        if allocation is None:
            return
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            pool = (result.driver, result.pool)
            self._free.pop(pool, None)
            self._left.pop(pool, None)
            self.changes.note(pool, len(self._in_pool))
            if not result.share_id:
                change_count(self.devices, (*pool, result.device), by)
                change_count(self._in_pool, pool, by)
                continue
            self._shared = None
            if by > 0:
                self._sharing[key] = claim
            else:
                self._sharing.pop(key, None)


def _shared(claims: Iterable[ResourceClaim]) -> dict[DeviceId, dict[str, Quantity]]:
    """Return the capacity that claims use of shared devices."""
    shared: dict[DeviceId, dict[str, Quantity]] = {}
    for claim in claims:
        for result in () if claim.status.allocation is None else claim.status.allocation.devices.results:
            if result.admin_access or not result.share_id:
                continue
            used = shared.setdefault((result.driver, result.pool, result.device), {})
            for name, written in result.consumed_capacity.items():
                what = f"claim {claim.metadata.namespace}/{claim.metadata.name}, capacity {name}"
                amount = read(written, what)
                used[name] = total(used[name], amount, what) if name in used else amount
    return shared

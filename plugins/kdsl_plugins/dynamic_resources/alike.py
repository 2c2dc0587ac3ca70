"""Nodes whose devices look alike to a pod: the search on one of them answers for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kdsl.cluster.api.device_objects import Allocation

from kdsl_plugins.dynamic_resources.kinds import frozen
from kdsl_plugins.dynamic_resources.looks import Looks
from kdsl_plugins.dynamic_resources.results import allocation_of
from kdsl_plugins.dynamic_resources.search import Chosen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kdsl.base.quantity import Quantity
    from kdsl.cluster.objects.node import NodeInfo

    from kdsl_plugins.dynamic_resources.devices import PoolDevice
    from kdsl_plugins.dynamic_resources.pools import Pool, SliceIndex
    from kdsl_plugins.dynamic_resources.requests import PodRequests, Request
    from kdsl_plugins.dynamic_resources.usage import Usage

Devices = tuple[tuple["PoolDevice", ...], ...]
"""The devices of the pools of a node that requests can get."""


class Place(NamedTuple):
    """A device that is chosen for a request: the number of its pool on the node, and its number there."""

    request: Request
    pool: int
    device: int
    share: Mapping[str, Quantity] | None


Places = tuple[tuple[Place, ...], ...]
"""The chosen devices of each claim, on any of the nodes that look alike."""


@dataclass(frozen=True, slots=True)
class Found:
    """The devices of a node for the claims of a pod. Nodes that look alike share one `places`."""

    requests: PodRequests
    places: Places
    devices: Devices
    node: str

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """The allocations of the claims, in order."""
        return tuple(
            allocation_of(
                each.claim,
                [Chosen(one.request, self.devices[one.pool][one.device], one.share) for one in places],
                self.node,
            )
            for each, places in zip(self.requests.claims, self.places, strict=True)
        )


class Alike:
    """Finds the nodes that look alike to the requests of a pod. `reads` are equal for requests to which the
    same nodes look alike.
    """

    def __init__(self, requests: PodRequests, slices: SliceIndex, looks: Looks, usage: Usage) -> None:
        self.slices, self._looks, self.usage = slices, looks, usage
        # Other requests do not read devices in use.
        self._reads_all = any(
            one.is_for_all or one.has_admin_access
            for claim in requests.claims
            for alternatives in claim.requests
            for one in alternatives
        )
        self.reads = (looks, self._reads_all)

    def key_on(self, node: NodeInfo) -> object:
        """Return equal keys for nodes that look alike; None for a node that looks like no other."""
        pools = self.slices.pools_on(node)
        return self.key(pools, self.devices(pools))

    def devices(self, pools: Sequence[Pool]) -> Devices:
        """Return the devices that requests can get of some pools."""
        if self._reads_all:
            return tuple([pool.devices for pool in pools])
        return tuple(map(self.usage.free, pools))

    def key(self, pools: Sequence[Pool], devices: Devices) -> object:
        """Return the key of a node with these pools and devices, as `key_on` does."""
        looks, key = self._looks, list[object]()
        for pool, usable in zip(pools, devices, strict=True):
            if pool.asks_node:
                return None
            if pool.is_incomplete or pool.is_invalid:
                key.append("invalid" if pool.is_invalid else "incomplete")
            elif not pool.is_plain:
                key.append(pool)
            else:
                numbers = looks.of_pool(pool) if usable is pool.devices else tuple(map(looks.of, usable))
                key.append((numbers, self._in_use(pool), self._shares(usable)))
        return tuple(key)

    def _in_use(self, pool: Pool) -> tuple[bool, ...]:
        """Return which devices of a pool are in use, if requests read that."""
        if not self._reads_all or self.usage.free(pool) is pool.devices:
            return ()
        in_use = self.usage.devices
        return tuple([each.id in in_use for each in pool.devices])

    def _shares(self, devices: Sequence[PoolDevice]) -> tuple[object, ...]:
        """Return the capacity in use of devices that claims share; nothing if none is."""
        shared = self.usage.shared
        found = tuple([frozen(shared.get(each.id)) for each in devices]) if shared else ()
        return found if any(each is not None for each in found) else ()


def places_of(chosen: Sequence[Sequence[Chosen]], devices: Devices) -> Places:
    """Return the places of chosen devices."""
    numbers = {
        device.id: (pool, number) for pool, known in enumerate(devices) for number, device in enumerate(known)
    }
    return tuple(
        tuple([Place(one.request, *numbers[one.device.id], one.share) for one in each]) for each in chosen
    )

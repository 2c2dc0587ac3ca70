"""The pools of devices that slices report, and the devices of them that a node can use.

Facts of k8s.io/dynamic-resource-allocation/structured/internal/incubating, 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.device_objects import ResourceSlice

from kdsl_plugins.dynamic_resources.amounts import read
from kdsl_plugins.dynamic_resources.devices import PoolDevice
from kdsl_plugins.dynamic_resources.looks import Attributes, Looks
from kdsl_plugins.dynamic_resources.node_match import NodeKey, NodeMatch, NodeReads

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo

Counters = Mapping[tuple[str, str], Quantity]
"""Amounts by counter set and counter."""

MAX_LOOKS: Final = 32
"""The most sets of attributes for which devices are numbered; then all are forgotten."""
MAX_NUMBERED: Final = 500_000
"""The most numbers of devices, about: no further set of attributes joins so many."""

PoolKey = tuple[str, str]
"""The driver and the name of a pool."""
_NO_COUNTERS: Final[Counters] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The devices of a pool that a node can use.

    No devices are taken from an incomplete pool, which its driver is changing, nor from an invalid one.
    `elsewhere` are its devices on other nodes: they use up `counters` of the pool, too. One that is `plain`
    has no devices that use up counters. If it `asks_node`, each device has nodes of its own.
    """

    driver: str
    name: str
    devices: tuple[PoolDevice, ...] = ()
    elsewhere: tuple[PoolDevice, ...] = ()
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False
    is_plain: bool = False
    asks_node: bool = False

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def key(self) -> PoolKey:
        return (self.driver, self.name)

    @property
    def is_usable(self) -> bool:
        """Whether devices may be taken from the pool."""
        return not (self.is_incomplete or self.is_invalid)

    @property
    def has_binding_conditions(self) -> bool:
        return any(each.device.binding_conditions for each in self.devices)


class SliceIndex:
    """All slices of the cluster, by the nodes that can use them, with the known facts about their devices.

    An index serves all attempts until a slice changes.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._slices = sorted(slices, key=_order)
        self._by_node: dict[str, list[int]] = {}
        self._shared: list[tuple[int, NodeMatch]] = []
        self._by_pool: dict[PoolKey, list[int]] = {}
        self._devices: dict[int, tuple[PoolDevice, ...]] = {}
        self._pools: dict[tuple[int, ...], Pool | None] = {}
        self._reads: NodeReads | None = None
        self._matching: dict[NodeKey, list[int]] = {}
        self._on: dict[tuple[str, NodeKey | None], tuple[Pool, ...]] = {}
        self._looks: dict[tuple[Attributes, tuple[str, ...]], Looks] = {}
        for at, thing in enumerate(self._slices):
            self._by_pool.setdefault(_pool_of(thing), []).append(at)
            if thing.spec.node_name:
                self._by_node.setdefault(thing.spec.node_name, []).append(at)
            else:
                self._shared.append((at, NodeMatch.of_slice(thing)))

    def pools_on(self, node: NodeInfo) -> tuple[Pool, ...]:
        """Return the pools with devices for a node, by driver and name; pools whose devices have binding
        conditions come last, since devices without any are ready at once.
        """
        key = (node.name if node.name in self._by_node else "", self._shared_key(node))
        found = self._on.get(key)
        if found is None:
            places = sorted([*self._by_node.get(node.name, ()), *self._shared_on(node, key[1])])
            groups = groupby(places, key=lambda at: _pool_of(self._slices[at]))
            pools = [pool for _, group in groups if (pool := self._pool(tuple(group)))]
            found = self._on[key] = tuple(sorted(pools, key=lambda pool: pool.has_binding_conditions))
        return found

    def nodes_with(self, pools: Iterable[PoolKey]) -> set[str] | None:
        """Return the names of the nodes that have slices of some pools; None if they may be any nodes."""
        found = {self._slices[at].spec.node_name for pool in pools for at in self._by_pool.get(pool, ())}
        return None if "" in found else found

    def looks(self, attributes: Attributes, constrained: tuple[str, ...] = ()) -> Looks:
        """Return the kept numbers of devices for these attributes."""
        key = (attributes, constrained)
        looks = self._looks.get(key)
        if looks is None:
            if len(self._looks) >= MAX_LOOKS or sum(map(len, self._looks.values())) > MAX_NUMBERED:
                self._looks.clear()
            looks = self._looks[key] = Looks(attributes, constrained)
        return looks

    def _shared_key(self, node: NodeInfo) -> NodeKey | None:
        """Return equal keys for nodes that are equal for the slices without a node name."""
        if not self._shared:
            return None
        if self._reads is None:
            self._reads = NodeReads.of([match for _, match in self._shared])
        return self._reads.key(node)

    def _shared_on(self, node: NodeInfo, key: NodeKey | None) -> Sequence[int]:
        """Return the places of the slices without a node name that a node can use."""
        if key is None:
            return ()
        places = self._matching.get(key)
        if places is None:
            # The counters of a pool count wherever its devices are.
            places = self._matching[key] = [
                at
                for at, match in self._shared
                if self._slices[at].spec.shared_counters or match.matches(node)
            ]
        return places

    def _pool(self, places: tuple[int, ...]) -> Pool | None:
        if places not in self._pools:
            self._pools[places] = self._made(places)
        return self._pools[places]

    def _made(self, places: tuple[int, ...]) -> Pool | None:
        """Return the pool of these slices, None where a newer generation of it has no slice for the node."""
        generation = max(self._slices[at].spec.pool.generation for at in places)
        newest = [at for at in places if self._slices[at].spec.pool.generation == generation]
        first = self._slices[newest[0]].spec
        everywhere: Sequence[int] = newest
        if len(newest) != first.pool.resource_slice_count:
            all_of_pool = self._by_pool[_pool_of(self._slices[newest[0]])]
            if any(self._slices[at].spec.pool.generation > generation for at in all_of_pool):
                return None
            everywhere = [at for at in all_of_pool if self._slices[at].spec.pool.generation == generation]
            if len(everywhere) != first.pool.resource_slice_count:
                return Pool(first.driver, first.pool.name, is_incomplete=True)
        return self._checked(newest, [at for at in everywhere if at not in set(newest)])

    def _checked(self, here: Sequence[int], elsewhere: Sequence[int]) -> Pool:
        """Return a complete pool; an invalid one has no devices."""
        spec = self._slices[here[0]].spec
        with_devices = [at for at in here if not self._slices[at].spec.shared_counters]
        devices = tuple(device for at in with_devices for device in self._devices_of(at))
        others = tuple(device for at in elsewhere for device in self._devices_of(at))
        counters = _counters(self._slices[at] for at in here)
        ids = {device.id for device in devices}
        everything = [device for at in (*here, *elsewhere) for device in self._devices_of(at)]
        if len(ids) < len(devices) or counters is None or not _are_counted(everything, counters):
            return Pool(spec.driver, spec.pool.name, is_invalid=True)
        asks_node = any(self._slices[at].spec.per_device_node_selection for at in here)
        return Pool(
            spec.driver,
            spec.pool.name,
            devices,
            others,
            counters,
            is_plain=not any(device.uses for device in devices),
            asks_node=asks_node,
        )

    def _devices_of(self, at: int) -> tuple[PoolDevice, ...]:
        devices = self._devices.get(at)
        if devices is None:
            thing = self._slices[at]
            devices = tuple(PoolDevice(thing, device) for device in thing.spec.devices)
            self._devices[at] = devices
        return devices


def _pool_of(thing: ResourceSlice) -> PoolKey:
    return (thing.spec.driver, thing.spec.pool.name)


def _order(thing: ResourceSlice) -> tuple[str, str, str]:
    return (thing.spec.driver, thing.spec.pool.name, thing.metadata.name)


def _counters(slices: Iterable[ResourceSlice]) -> Counters | None:
    """Return the counters of a pool; None where two sets have one name."""
    sets = [each for thing in slices for each in thing.spec.shared_counters]
    if not sets:
        return _NO_COUNTERS
    if len({each.name for each in sets}) < len(sets):
        return None
    return {
        (each.name, name): read(counter.value, f"counter {name}")
        for each in sets
        for name, counter in each.counters.items()
    }


def _are_counted(devices: Iterable[PoolDevice], counters: Counters) -> bool:
    """Return whether the pool has all counters that its devices use up."""
    return all(key in counters for device in devices for key in device.uses)

"""Provisioning of volumes for a node: the provisioner of the class, allowed topologies, free storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.objects import quantity
from kdsl.cluster.api.storage_objects import CSIStorageCapacity, StorageClass, TopologyTerm
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.selector_index import SelectorIndex

if TYPE_CHECKING:
    from kdsl.cluster.snapshot.catalog import Catalog

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class Pool:
    """Storage for a set of nodes: `limit` is the largest volume that fits."""

    nodes: LabelSelector
    limit: Quantity


@dataclass(frozen=True, slots=True)
class Provisioner:
    """A storage class. `pools` are None where its driver does not report free storage; `nodes` finds their
    places by the labels of a node.
    """

    can_provision: bool
    topologies: tuple[TopologyTerm, ...]
    pools: tuple[Pool, ...] | None
    nodes: SelectorIndex[int] = field(init=False, repr=False, compare=False)
    label_keys: frozenset[str] = field(init=False, repr=False, compare=False)
    """The labels of nodes that decide whether a volume can be made."""

    def __post_init__(self) -> None:
        allowed = [one.key for term in self.topologies for one in term.match_label_expressions]
        reported = [one.key for pool in self.pools or () for one in pool.nodes.requirements]
        object.__setattr__(self, "label_keys", frozenset([*allowed, *reported]))
        object.__setattr__(self, "nodes", SelectorIndex())
        for place, pool in enumerate(self.pools or ()):
            self.nodes.put(place, pool.nodes)

    @staticmethod
    def of(storage_class: StorageClass, capacities: Iterable[CSIStorageCapacity] | None) -> Provisioner:
        """Read a storage class and the capacities of all classes; None if its driver does not report any."""
        pools: tuple[Pool, ...] | None = None
        if capacities is not None:
            found = (
                _pool(capacity)
                for capacity in capacities
                if capacity.storage_class_name == storage_class.metadata.name
            )
            pools = tuple(pool for pool in found if pool is not None)
        can_provision = storage_class.provisioner not in ("", NO_PROVISIONER)
        return Provisioner(can_provision, tuple(storage_class.allowed_topologies), pools)

    def serves(self, labels: Mapping[str, str]) -> bool:
        """Return whether the class allows volumes for a node with `labels`."""
        if not self.can_provision:
            return False
        return not self.topologies or any(_allows(term, labels) for term in self.topologies)

    def has_room(self, requested: Quantity | None, labels: Mapping[str, str]) -> bool:
        """Return whether a volume of that size can be made for a node with `labels`; True where that is
        unknown.
        """
        if self.pools is None or requested is None:
            return True
        # Free storage is compared in whole bytes.
        size = requested.value()
        for place in self.nodes.matching(labels):
            pool = self.pools[place]
            if pool.limit.value() >= size and pool.nodes.matches(labels):
                return True
        return False


class Provisioners:
    """The provisioner of each storage class, read again where its objects changed.

    With local storage there is a capacity for each node, and pods with claims ask one after the other.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Provisioner]] = {}

    def of(self, name: str, catalog: Catalog) -> Provisioner:
        """Return the provisioner of a class that exists."""
        storage_class = catalog.storage_classes[name]
        driver = catalog.csi_drivers.get(storage_class.provisioner)
        reports = driver is not None and driver.spec.storage_capacity
        source = storage_class, tuple(catalog.storage_capacities.values()) if reports else None
        known = self._known.get(name)
        if known is None or known[0] != source:
            known = self._known[name] = source, Provisioner.of(*source)
        return known[1]


def _pool(capacity: CSIStorageCapacity) -> Pool | None:
    """Read a capacity; None where it names no nodes or amount. The maximum volume size is the better
    limit.
    """
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    if limit is None or capacity.node_topology is None:
        return None
    return Pool(LabelSelector.of(capacity.node_topology), quantity(limit))


def _allows(term: TopologyTerm, labels: Mapping[str, str]) -> bool:
    """Return whether a node with `labels` is inside an allowed topology; a term without conditions allows
    none.
    """
    conditions = term.match_label_expressions
    return bool(conditions) and all(labels.get(one.key) in one.values for one in conditions)

"""Everything in the cluster that is neither node nor pod: namespaces, workloads, storage, budgets.

`ClusterCache` keeps one catalog up to date; readers reach it as `Snapshot.catalog`. It is live: overlays of a
snapshot have the same one, since a what-if moves pods only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar, cast

from kdsl.base.frozen_map import NO_STRINGS, FrozenMap, freeze
from kdsl.cluster.api.kinds import NAMESPACED, CatalogObject
from kdsl.cluster.api.objects import Namespace
from kdsl.cluster.api.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kdsl.cluster.api.workload_objects import (
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    Service,
    StatefulSet,
)
from kdsl.cluster.devices.pods import whole_amounts
from kdsl.cluster.devices.quota import limits_of
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.storage_index import StorageIndex

T = TypeVar("T", bound=CatalogObject)


class CatalogWord(StrEnum):
    """What rules read of a catalog, as a word of `reads`; each has a version of its own."""

    NAMESPACES = "cluster.namespaces"
    SERVICES = "cluster.services"
    STORAGE = "cluster.storage"
    BUDGETS = "cluster.budgets"
    QUOTAS = "cluster.quotas"


_WORDS: Final[dict[str, CatalogWord]] = {
    Namespace.KIND: CatalogWord.NAMESPACES,
    **{
        kind.KIND: CatalogWord.SERVICES for kind in (Service, ReplicationController, ReplicaSet, StatefulSet)
    },
    PodDisruptionBudget.KIND: CatalogWord.BUDGETS,
    ResourceQuota.KIND: CatalogWord.QUOTAS,
    **{
        kind.KIND: CatalogWord.STORAGE
        for kind in (
            PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver, CSIStorageCapacity,
            VolumeAttachment,
        )
    },
}  # fmt: skip


def kinds_behind(word: str) -> tuple[str, ...]:
    """Return the kinds of objects that a word of `reads` is about; none for other words."""
    return tuple(kind for kind, known in _WORDS.items() if known == word)


def key_of(thing: CatalogObject) -> str:
    """Return the name that is unique in its kind: `namespace/name`, or `name` without a namespace."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if isinstance(thing, NAMESPACED) else meta.name


class Catalog:
    """The objects by kind, and versions that rise with every change. Only the cache writes to it."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, CatalogObject]] = {kind: {} for kind in _WORDS}
        self._versions: dict[str, int] = dict.fromkeys(CatalogWord, 0)
        self._namespaces: dict[str, FrozenMap[str, str]] = {}
        self._services: dict[str, tuple[LabelSelector, ...]] = {}
        self._selectors: dict[tuple[str, str], LabelSelector] = {}
        # What assumed objects stand in for, by kind and key.
        self._assumed: dict[tuple[str, str], CatalogObject | None] = {}
        self._quotas: dict[str, dict[str, int]] = {}
        self.storage = StorageIndex()

    def copy(self) -> Catalog:
        """Return a catalog of the same objects, which goes its own way from here."""
        other = Catalog()
        other._objects = {kind: dict(objects) for kind, objects in self._objects.items()}
        other._versions, other._assumed = dict(self._versions), dict(self._assumed)
        other._namespaces, other._services = dict(self._namespaces), dict(self._services)
        other._selectors, other._quotas = dict(self._selectors), dict(self._quotas)
        other.storage = self.storage.copy()
        return other

    def put(self, thing: CatalogObject) -> bool:
        """Take in an object, or what it has become; False where it is known like this.

        An assumption about it is over.
        """
        objects, key = self._objects[thing.KIND], key_of(thing)
        self._assumed.pop((thing.KIND, key), None)
        if objects.get(key) == thing:
            return False
        objects[key] = thing
        self._changed(thing.KIND, key)
        return True

    def remove(self, kind: str, key: str) -> bool:
        """Drop the object of a kind, known by `key_of`; False where there is none."""
        self._assumed.pop((kind, key), None)
        if self._objects[kind].pop(key, None) is None:
            return False
        self._changed(kind, key)
        return True

    def assume(self, thing: CatalogObject) -> None:
        """Show readers `thing`, until it is forgotten or the API says what has become of the object."""
        objects, key = self._objects[thing.KIND], key_of(thing)
        self._assumed.setdefault((thing.KIND, key), objects.get(key))
        objects[key] = thing
        self._changed(thing.KIND, key)

    def forget(self, kind: str, key: str) -> bool:
        """Show the object as it was before it was assumed; False where it is not assumed (any more)."""
        if (kind, key) not in self._assumed:
            return False
        before = self._assumed.pop((kind, key))
        if before is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = before
        self._changed(kind, key)
        return True

    def find(self, kind: str, key: str) -> CatalogObject | None:
        """Return the object of a kind, known by `key_of`."""
        return self._objects[kind].get(key)

    def version(self, word: str) -> int:
        """Return the version of what a word of `reads` names: `cluster.namespaces` and so on."""
        return self._versions[word]

    @property
    def namespaces(self) -> Mapping[str, FrozenMap[str, str]]:
        """The labels of namespaces by name."""
        return self._namespaces

    @property
    def services(self) -> Mapping[str, tuple[LabelSelector, ...]]:
        """What the services of each namespace select by; those without a selector select no pods."""
        return self._services

    def workload_selector(self, kind: str, key: str) -> LabelSelector | None:
        """Return what a ReplicationController, ReplicaSet or StatefulSet `namespace/name` selects by."""
        return self._selectors.get((kind, key))

    def workload_selectors(self, namespace: str) -> tuple[LabelSelector, ...]:
        """Return what the ReplicationControllers, ReplicaSets and StatefulSets of a namespace select by."""
        start = f"{namespace}/"
        return tuple(one for (_, key), one in self._selectors.items() if key.startswith(start))

    @property
    def claims(self) -> Mapping[str, PersistentVolumeClaim]:
        """The claims by `namespace/name`."""
        return self._of(PersistentVolumeClaim)

    @property
    def volumes(self) -> Mapping[str, PersistentVolume]:
        return self._of(PersistentVolume)

    @property
    def storage_classes(self) -> Mapping[str, StorageClass]:
        return self._of(StorageClass)

    @property
    def csi_nodes(self) -> Mapping[str, CSINode]:
        """What CSI drivers say of nodes, by the name of the node."""
        return self._of(CSINode)

    @property
    def csi_drivers(self) -> Mapping[str, CSIDriver]:
        return self._of(CSIDriver)

    @property
    def storage_capacities(self) -> Mapping[str, CSIStorageCapacity]:
        """What storage is left, by `namespace/name` of the object that says so."""
        return self._of(CSIStorageCapacity)

    @property
    def volume_attachments(self) -> Mapping[str, VolumeAttachment]:
        return self._of(VolumeAttachment)

    @property
    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """The disruption budgets, in the order in which they came."""
        return tuple(self._of(PodDisruptionBudget).values())

    @property
    def limited_namespaces(self) -> tuple[str, ...]:
        """The namespaces that have quotas with limits."""
        return tuple(self._quotas)

    def quota_limits(self, namespace: str) -> Mapping[str, int]:
        """Return what ResourceQuotas limit containers of a namespace to, by resource: whole numbers only."""
        return self._quotas.get(namespace, {})

    def complete(self, pod: PodInfo) -> PodInfo:
        """Return `pod` with the labels of its namespace."""
        labels = self._namespaces.get(pod.namespace, NO_STRINGS)
        known = pod.namespace_labels
        return pod if known is labels or known == labels else pod.with_fields(namespace_labels=labels)

    def _of(self, kind: type[T]) -> Mapping[str, T]:
        # INVARIANT: `put` keeps every object under its own kind.
        return cast("Mapping[str, T]", self._objects[kind.KIND])

    def _changed(self, kind: str, key: str) -> None:
        """Follow a change: versions, and what is kept in another form."""
        self._versions[_WORDS[kind]] += 1
        thing = self._objects[kind].get(key)
        if kind == Namespace.KIND:
            _set(self._namespaces, key, None if thing is None else freeze(thing.metadata.labels))
        elif kind == Service.KIND:
            namespace = key.partition("/")[0]
            _set(self._services, namespace, self._service_selectors(namespace) or None)
        elif kind == ResourceQuota.KIND:
            namespace = key.partition("/")[0]
            _set(self._quotas, namespace, self._limits(namespace) or None)
        elif _WORDS[kind] is CatalogWord.STORAGE:
            if thing is None:
                self.storage.remove(kind, key)
            else:
                self.storage.put(thing)
        elif _WORDS[kind] is CatalogWord.SERVICES:
            _set(self._selectors, (kind, key), None if thing is None else _selector_of(thing))

    def _service_selectors(self, namespace: str) -> tuple[LabelSelector, ...]:
        services = (one for one in self._of(Service).values() if one.metadata.namespace == namespace)
        return tuple(
            LabelSelector.of_labels(one.spec.selector) for one in services if one.spec.selector is not None
        )

    def _limits(self, namespace: str) -> dict[str, int]:
        """Return the limits of a namespace: of several quotas the smallest counts."""
        found: dict[str, int] = {}
        for quota in self._of(ResourceQuota).values():
            if quota.metadata.namespace == namespace:
                for name, limit in limits_of(whole_amounts(quota.spec.hard)).items():
                    found[name] = min(limit, found.get(name, limit))
        return found


K = TypeVar("K")
V = TypeVar("V")


def _set(into: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def _selector_of(thing: CatalogObject) -> LabelSelector | None:
    if isinstance(thing, ReplicationController):
        return LabelSelector.of_labels(thing.spec.selector or {})
    if isinstance(thing, ReplicaSet | StatefulSet) and thing.spec.selector is not None:
        return LabelSelector.of(thing.spec.selector)
    return None

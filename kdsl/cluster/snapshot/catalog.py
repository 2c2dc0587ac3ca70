"""All objects of the cluster except nodes and pods: namespaces, workloads, storage, budgets.

`ClusterCache` keeps one catalog up to date; readers reach it as `Snapshot.catalog`. It is live: overlays of a
snapshot share it, since a what-if moves pods only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeVar, cast

from kdsl.base.change_log import ChangeLog
from kdsl.base.frozen_map import NO_STRINGS, FrozenMap, freeze
from kdsl.base.resources import is_extended
from kdsl.cluster.api.device_objects import DeviceClass, ResourceClaim, ResourceSlice
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
from kdsl.cluster.objects.selector_index import Selectors
from kdsl.cluster.snapshot.storage_index import StorageIndex

T = TypeVar("T", bound=CatalogObject)


class CatalogWord(StrEnum):
    """The parts of a catalog, as words of `reads`; each has a version of its own."""

    NAMESPACES = "cluster.namespaces"
    SERVICES = "cluster.services"
    STORAGE = "cluster.storage"
    BUDGETS = "cluster.budgets"
    QUOTAS = "cluster.quotas"
    DEVICES = "cluster.devices"
    DEVICE_CLAIMS = "cluster.deviceClaims"


_WORDS: Final[dict[str, CatalogWord]] = {
    Namespace.KIND: CatalogWord.NAMESPACES,
    **{
        kind.KIND: CatalogWord.SERVICES for kind in (Service, ReplicationController, ReplicaSet, StatefulSet)
    },
    PodDisruptionBudget.KIND: CatalogWord.BUDGETS,
    ResourceQuota.KIND: CatalogWord.QUOTAS,
    **{kind.KIND: CatalogWord.DEVICES for kind in (DeviceClass, ResourceSlice)},
    ResourceClaim.KIND: CatalogWord.DEVICE_CLAIMS,
    **{
        kind.KIND: CatalogWord.STORAGE
        for kind in (
            PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver, CSIStorageCapacity,
            VolumeAttachment,
        )
    },
}  # fmt: skip


def kinds_behind(word: str) -> tuple[str, ...]:
    """Return the kinds of objects behind a word of `reads`; none for words that are not the catalog's."""
    return tuple(kind for kind, known in _WORDS.items() if known == word)


def key_of(api_object: CatalogObject) -> str:
    """Return the name of an object, unique within its kind: `namespace/name` or `name`."""
    meta = api_object.metadata
    return f"{meta.namespace}/{meta.name}" if isinstance(api_object, NAMESPACED) else meta.name


class Catalog:
    """The objects by kind, and versions that rise with every change. Only the cache writes to it.

    `device_claim_changes` logs the keys of changed ResourceClaims.
    """

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, CatalogObject]] = {kind: {} for kind in _WORDS}
        self._versions: dict[str, int] = dict.fromkeys(CatalogWord, 0)
        self._namespaces: dict[str, FrozenMap[str, str]] = {}
        # The selectors of services, and of workloads, by namespace.
        self._services: dict[str, Selectors] = {}
        self._workloads: dict[str, Selectors] = {}
        # The objects that assumed objects replace, by kind and key.
        self._assumed: dict[tuple[str, str], CatalogObject | None] = {}
        self._quotas: dict[str, dict[str, int]] = {}
        # The keys of the ResourceQuotas of each namespace.
        self._quota_keys: dict[str, tuple[str, ...]] = {}
        self._device_resources: Mapping[str, DeviceClass] = {}
        self.device_claim_changes: ChangeLog[str] = ChangeLog()
        self.storage = StorageIndex()

    def copy(self) -> Catalog:
        """Return an independent catalog of the same objects."""
        other = Catalog()
        other._objects = {kind: dict(objects) for kind, objects in self._objects.items()}
        other._versions, other._assumed = dict(self._versions), dict(self._assumed)
        other._namespaces = dict(self._namespaces)
        other._services = {name: each.copy() for name, each in self._services.items()}
        other._workloads = {name: each.copy() for name, each in self._workloads.items()}
        other._quotas, other._quota_keys = dict(self._quotas), dict(self._quota_keys)
        other._device_resources = self._device_resources
        other.storage = self.storage.copy()
        return other

    def put(self, api_object: CatalogObject) -> bool:
        """Add or update an object, and end an assumption about it; return False where it is unchanged."""
        objects, key = self._objects[api_object.KIND], key_of(api_object)
        self._assumed.pop((api_object.KIND, key), None)
        if objects.get(key) == api_object:
            return False
        objects[key] = api_object
        self._changed(api_object.KIND, key)
        return True

    def remove(self, kind: str, key: str) -> bool:
        """Remove the object of a kind, identified by `key_of`; return False where there is none."""
        self._assumed.pop((kind, key), None)
        if self._objects[kind].pop(key, None) is None:
            return False
        self._changed(kind, key)
        return True

    def assume(self, api_object: CatalogObject) -> None:
        """Show readers `api_object`, until it is forgotten or the API reports a new version of the object."""
        objects, key = self._objects[api_object.KIND], key_of(api_object)
        self._assumed.setdefault((api_object.KIND, key), objects.get(key))
        objects[key] = api_object
        self._changed(api_object.KIND, key)

    def forget(self, kind: str, key: str) -> bool:
        """Undo the assumption of an object; return False where it is not assumed (any more)."""
        if (kind, key) not in self._assumed:
            return False
        before = self._assumed.pop((kind, key))
        if before is None:
            del self._objects[kind][key]
        else:
            self._objects[kind][key] = before
        self._changed(kind, key)
        return True

    def is_assumed(self, kind: str, key: str) -> bool:
        """Return whether readers see an assumed state of an object."""
        return (kind, key) in self._assumed

    def find(self, kind: str, key: str) -> CatalogObject | None:
        """Return the object of a kind, identified by `key_of`."""
        return self._objects[kind].get(key)

    def objects(self) -> Iterator[CatalogObject]:
        """Yield all objects as the API reports them, kind by kind: an assumed one as it was before."""
        for kind, objects in self._objects.items():
            for key, each in objects.items():
                known = self._assumed.get((kind, key), each)
                if known is not None:
                    yield known

    def version(self, word: str) -> int:
        """Return the version of a word of `reads`: `cluster.namespaces` and so on."""
        return self._versions[word]

    @property
    def namespaces(self) -> Mapping[str, FrozenMap[str, str]]:
        """The labels of namespaces by name."""
        return self._namespaces

    def service_selectors(self, pod: PodInfo) -> list[LabelSelector]:
        """Return the selectors of the services that select a pod, in the order of their addition."""
        return _matching(self._services, pod)

    def workload_selector(self, kind: str, key: str) -> LabelSelector | None:
        """Return the selector of a ReplicationController, ReplicaSet or StatefulSet `namespace/name`."""
        known = self._workloads.get(key.partition("/")[0])
        return None if known is None else known.get(f"{kind} {key}")

    def workload_selectors(self, pod: PodInfo) -> list[LabelSelector]:
        """Return the selectors of the ReplicationControllers, ReplicaSets and StatefulSets that match a pod,
        in the order of their addition.
        """
        return _matching(self._workloads, pod)

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
        """The reports of CSI drivers about nodes, by the name of the node."""
        return self._of(CSINode)

    @property
    def csi_drivers(self) -> Mapping[str, CSIDriver]:
        return self._of(CSIDriver)

    @property
    def storage_capacities(self) -> Mapping[str, CSIStorageCapacity]:
        """The remaining storage, by `namespace/name` of the object that reports it."""
        return self._of(CSIStorageCapacity)

    @property
    def resource_claims(self) -> Mapping[str, ResourceClaim]:
        """The claims of devices by `namespace/name`; `claims` are those of volumes."""
        return self._of(ResourceClaim)

    @property
    def resource_slices(self) -> Mapping[str, ResourceSlice]:
        """The devices that drivers report, by the name of the slice."""
        return self._of(ResourceSlice)

    @property
    def device_classes(self) -> Mapping[str, DeviceClass]:
        return self._of(DeviceClass)

    @property
    def device_resources(self) -> Mapping[str, DeviceClass]:
        """The device classes by the extended resources that they offer."""
        return self._device_resources

    @property
    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """The disruption budgets, in the order in which they were added."""
        return tuple(self._of(PodDisruptionBudget).values())

    @property
    def limited_namespaces(self) -> tuple[str, ...]:
        """The namespaces that have quotas with limits."""
        return tuple(self._quotas)

    def quota_limits(self, namespace: str) -> Mapping[str, int]:
        """Return the limits of ResourceQuotas for containers of a namespace, by resource, in whole
        numbers.
        """
        return self._quotas.get(namespace, {})

    def complete(self, pod: PodInfo) -> PodInfo:
        """Return `pod` with the labels of its namespace, and the resources that device classes offer."""
        labels = self._namespaces.get(pod.namespace, NO_STRINGS)
        known = pod.namespace_labels
        if known is not labels and known != labels:
            pod = pod.with_fields(namespace_labels=labels)
        if pod.device_containers or pod.device_resources:
            names = tuple(name for name in pod.requests.amounts() if name in self._device_resources)
            if names != pod.device_resources:
                pod = pod.with_fields(device_resources=names)
        return pod

    def _of(self, kind: type[T]) -> Mapping[str, T]:
        # INVARIANT: `put` keeps every object under its own kind.
        return cast("Mapping[str, T]", self._objects[kind.KIND])

    def _changed(self, kind: str, key: str) -> None:
        """Update versions and derived values after a change."""
        self._versions[_WORDS[kind]] += 1
        api_object = self._objects[kind].get(key)
        if kind == Namespace.KIND:
            _set(self._namespaces, key, None if api_object is None else freeze(api_object.metadata.labels))
        elif kind == Service.KIND:
            _put_selector(self._services, key, key, api_object)
        elif kind == ResourceQuota.KIND:
            namespace = key.partition("/")[0]
            keys = [each for each in self._quota_keys.get(namespace, ()) if each != key]
            keys += [] if api_object is None else [key]
            _set(self._quota_keys, namespace, tuple(keys) or None)
            _set(self._quotas, namespace, self._limits(namespace) or None)
        elif kind == ResourceClaim.KIND:
            self.device_claim_changes.note(key, len(self._objects[kind]))
        elif kind == DeviceClass.KIND:
            self._device_resources = offered_by(self.device_classes.values())
        elif _WORDS[kind] is CatalogWord.STORAGE:
            self.storage.changes.note((kind, key), len(self._objects[kind]))
            if api_object is None:
                self.storage.remove(kind, key)
            else:
                self.storage.put(api_object)
        elif _WORDS[kind] is CatalogWord.SERVICES:
            _put_selector(self._workloads, key, f"{kind} {key}", api_object)

    def _limits(self, namespace: str) -> dict[str, int]:
        """Return the limits of a namespace: of several quotas the smallest limit counts."""
        found: dict[str, int] = {}
        quotas = self._of(ResourceQuota)
        for key in self._quota_keys.get(namespace, ()):
            for name, limit in limits_of(whole_amounts(quotas[key].spec.hard)).items():
                found[name] = min(limit, found.get(name, limit))
        return found


K = TypeVar("K")
V = TypeVar("V")


def _set(into: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


def _matching(selectors: Mapping[str, Selectors], pod: PodInfo) -> list[LabelSelector]:
    known = selectors.get(pod.namespace)
    return [] if known is None else known.matching(pod.labels)


def _put_selector(
    selectors: dict[str, Selectors], key: str, name: str, api_object: CatalogObject | None
) -> None:
    """Set or forget the selector of an object `name` with the key `namespace/name`."""
    namespace = key.partition("/")[0]
    known = selectors.setdefault(namespace, Selectors())
    if api_object is None:
        known.drop(name)
    else:
        known.put(name, _selector_of(api_object))
    if not known:
        del selectors[namespace]


def _selector_of(api_object: CatalogObject) -> LabelSelector | None:
    if isinstance(api_object, Service):
        selector = api_object.spec.selector
        return None if selector is None else LabelSelector.of_labels(selector)
    if isinstance(api_object, ReplicationController):
        return LabelSelector.of_labels(api_object.spec.selector or {})
    if isinstance(api_object, ReplicaSet | StatefulSet) and api_object.spec.selector is not None:
        return LabelSelector.of(api_object.spec.selector)
    return None


_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""The beginning of the resource that each class offers; the name of the class follows."""


def offered_by(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the classes by the resources that they offer.

    Of several classes with one resource the newest offers it; of classes of one age, the first by name.
    """
    offered = {}
    by_name = sorted(classes, key=lambda each: each.metadata.name, reverse=True)
    for each in sorted(by_name, key=_created):
        offered[_OF_CLASS + each.metadata.name] = each
        if is_extended(each.spec.extended_resource_name):
            offered[each.spec.extended_resource_name] = each
    return offered


def _created(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return 0 if created is None else created.timestamp()

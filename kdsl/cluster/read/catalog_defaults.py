"""What the API server fills in for objects of the catalog that come from files; `defaults` applies it.

Facts of k8s.io/kubernetes/pkg/apis/{core,storage,apps}/v1/defaults.go, 1.36.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from kdsl.cluster.api.kinds import NAMESPACED, CatalogObject
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from kdsl.cluster.api.workload_objects import ReplicationController

DEFAULT_NAMESPACE: Final = "default"
NAME_LABEL: Final = "kubernetes.io/metadata.name"

Stored = TypeVar("Stored", PersistentVolumeClaim, PersistentVolume)


def default_catalog_object(thing: CatalogObject) -> CatalogObject:
    """Return `thing` with the fields filled in that the API server would fill in."""
    meta = default_metadata(thing.metadata, is_namespaced=isinstance(thing, NAMESPACED))
    if meta is not thing.metadata:
        thing = replace(thing, metadata=meta)
    if isinstance(thing, Namespace):
        labels = {**meta.labels, NAME_LABEL: meta.name}
        return replace(thing, metadata=replace(meta, labels=labels))
    if isinstance(thing, PersistentVolumeClaim):
        return _default_stored(thing)
    if isinstance(thing, PersistentVolume):
        return _default_stored(thing)
    if isinstance(thing, StorageClass):
        return replace(thing, volume_binding_mode=thing.volume_binding_mode or "Immediate")
    if isinstance(thing, ReplicationController) and not thing.spec.selector:
        labels = thing.spec.template.metadata.labels
        return replace(thing, spec=replace(thing.spec, selector=labels))
    return thing


def default_metadata(meta: ObjectMeta, *, is_namespaced: bool) -> ObjectMeta:
    """Return metadata with a namespace, for kinds that have them, and a uid."""
    namespace = (meta.namespace or DEFAULT_NAMESPACE) if is_namespaced else ""
    uid = meta.uid or (f"{namespace}/{meta.name}" if is_namespaced else meta.name)
    if namespace == meta.namespace and uid == meta.uid:
        return meta
    return replace(meta, namespace=namespace, uid=uid)


def _default_stored(thing: Stored) -> Stored:
    spec = replace(thing.spec, volume_mode=thing.spec.volume_mode or "Filesystem")
    status = replace(thing.status, phase=thing.status.phase or "Pending")
    return replace(thing, spec=spec, status=status)

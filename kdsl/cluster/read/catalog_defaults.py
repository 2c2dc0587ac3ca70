"""The API server's defaults for catalog objects from files; `defaults` applies them.

Facts of k8s.io/kubernetes/pkg/apis/{core,storage,apps,resource}/v1/defaults.go, 1.36.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from kdsl.cluster.api.device_objects import EXACT_COUNT, ClaimRequest, DeviceRequest, ResourceClaim
from kdsl.cluster.api.kinds import NAMESPACED, CatalogObject
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim, StorageClass
from kdsl.cluster.api.workload_objects import ReplicationController

DEFAULT_NAMESPACE: Final = "default"
NAME_LABEL: Final = "kubernetes.io/metadata.name"

Stored = TypeVar("Stored", PersistentVolumeClaim, PersistentVolume)


def default_catalog_object(api_object: CatalogObject) -> CatalogObject:
    """Return `api_object` with the API server's defaults in its absent fields."""
    meta = default_metadata(api_object.metadata, is_namespaced=isinstance(api_object, NAMESPACED))
    if meta is not api_object.metadata:
        api_object = replace(api_object, metadata=meta)
    if isinstance(api_object, Namespace):
        labels = {**meta.labels, NAME_LABEL: meta.name}
        return replace(api_object, metadata=replace(meta, labels=labels))
    if isinstance(api_object, PersistentVolumeClaim):
        return _default_stored(api_object)
    if isinstance(api_object, PersistentVolume):
        return _default_stored(api_object)
    if isinstance(api_object, StorageClass):
        return replace(api_object, volume_binding_mode=api_object.volume_binding_mode or "Immediate")
    if isinstance(api_object, ResourceClaim):
        return _default_claim(api_object)
    if isinstance(api_object, ReplicationController) and not api_object.spec.selector:
        labels = api_object.spec.template.metadata.labels
        return replace(api_object, spec=replace(api_object.spec, selector=labels))
    return api_object


def default_metadata(meta: ObjectMeta, *, is_namespaced: bool) -> ObjectMeta:
    """Return metadata with a namespace, for namespaced kinds, and a uid."""
    namespace = (meta.namespace or DEFAULT_NAMESPACE) if is_namespaced else ""
    uid = meta.uid or (f"{namespace}/{meta.name}" if is_namespaced else meta.name)
    if namespace == meta.namespace and uid == meta.uid:
        return meta
    return replace(meta, namespace=namespace, uid=uid)


def _default_claim(claim: ResourceClaim) -> ResourceClaim:
    devices = claim.spec.devices
    requests = [_default_request(request) for request in devices.requests]
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _default_request(request: ClaimRequest) -> ClaimRequest:
    exactly = None if request.exactly is None else _default_count(request.exactly)
    return replace(
        request, exactly=exactly, first_available=[_default_count(each) for each in request.first_available]
    )


def _default_count(request: DeviceRequest) -> DeviceRequest:
    mode = request.allocation_mode or EXACT_COUNT
    count = 1 if mode == EXACT_COUNT and not request.count else request.count
    return replace(request, allocation_mode=mode, count=count)


def _default_stored(api_object: Stored) -> Stored:
    spec = replace(api_object.spec, volume_mode=api_object.spec.volume_mode or "Filesystem")
    status = replace(api_object.status, phase=api_object.status.phase or "Pending")
    return replace(api_object, spec=spec, status=status)

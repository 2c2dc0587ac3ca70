"""The kinds of Kubernetes objects that kdsl reads, and those that it recognises only.

`read` looks up every object here; any other kind is a warning.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kdsl.cluster.api.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from kdsl.cluster.api.objects import Namespace, Node, Pod
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

StorageObject: TypeAlias = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
WorkloadObject: TypeAlias = (
    Service | ReplicationController | ReplicaSet | StatefulSet | PodDisruptionBudget | ResourceQuota
)
DeviceObject: TypeAlias = DeviceClass | ResourceClaim | ResourceSlice
CatalogObject: TypeAlias = Namespace | WorkloadObject | StorageObject | DeviceObject
"""An object that the catalog holds."""
KubeObject: TypeAlias = Pod | Node | CatalogObject

_READ: Final[dict[str, tuple[type[KubeObject], ...]]] = {
    "v1": (
        Pod, Node, Namespace, Service, ReplicationController, ResourceQuota, PersistentVolume,
        PersistentVolumeClaim,
    ),
    "apps/v1": (ReplicaSet, StatefulSet),
    "policy/v1": (PodDisruptionBudget,),
    "storage.k8s.io/v1": (CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment),
    "resource.k8s.io/v1": (DeviceClass, ResourceClaim, ResourceSlice),
}  # fmt: skip

KINDS: Final[dict[tuple[str, str], type[KubeObject]]] = {
    (version, kind.KIND): kind for version, kinds in _READ.items() for kind in kinds
}
"""The kinds that are read, by apiVersion and kind."""

NAMESPACED: Final = (
    Pod, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget,
    PersistentVolumeClaim, CSIStorageCapacity, ResourceQuota, ResourceClaim,
)  # fmt: skip
"""The kinds of namespaced objects."""

_KINDS: Final = {
    "v1": """Binding ConfigMap Endpoints Event LimitRange PodTemplate Secret ServiceAccount""",
    "apps/v1": "ControllerRevision DaemonSet Deployment",
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "ResourceClaimTemplate",
    "scheduling.k8s.io/v1": "PriorityClass",
}

KNOWN_KINDS: Final = frozenset((version, kind) for version, kinds in _KINDS.items() for kind in kinds.split())
"""Kinds that are recognised and skipped, as (apiVersion, kind)."""

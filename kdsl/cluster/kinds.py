"""The kinds of Kubernetes that kdsl knows by name but does not read.

`read` counts them; anything else is a warning.
"""

from __future__ import annotations

from typing import Final

_KINDS: Final = {
    "v1": """Binding ConfigMap Endpoints Event LimitRange PersistentVolume PersistentVolumeClaim PodTemplate
        ReplicationController ResourceQuota Secret Service ServiceAccount""",
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}

KNOWN_KINDS: Final = frozenset((version, kind) for version, kinds in _KINDS.items() for kind in kinds.split())
"""Kinds that are recognised and passed over, as (apiVersion, kind)."""

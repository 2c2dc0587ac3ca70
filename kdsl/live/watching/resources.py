"""The watchable resources of the API: their paths, and the types their objects are decoded into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.kinds import KINDS, NAMESPACED, KubeObject

UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that use resources."""

_PLURALS: Final = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "replicationcontrollers",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ResourceQuota": "resourcequotas",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A resource: its plural `name`, the `version` of its group (`v1`, `apps/v1`), and its type in kdsl."""

    name: str
    version: str
    kind: type[KubeObject]
    field_selector: str = ""

    @property
    def path(self) -> str:
        """Return the path of its list over all namespaces."""
        root = "/apis/" if "/" in self.version else "/api/"
        return f"{root}{self.version}/{self.name}"

    @property
    def group(self) -> str:
        """Return the API group, empty for the core one."""
        return self.version.rpartition("/")[0]

    @property
    def is_namespaced(self) -> bool:
        """Return whether its objects have namespaces."""
        return issubclass(self.kind, NAMESPACED)


RESOURCES: Final = {
    _PLURALS[kind.KIND]: ApiResource(
        _PLURALS[kind.KIND], version, kind, UNFINISHED if kind.KIND == "Pod" else ""
    )
    for (version, _), kind in KINDS.items()
}
"""Every watchable resource, by its plural name."""

PODS: Final = RESOURCES["pods"]
NODES: Final = RESOURCES["nodes"]


def resource_of(kind: str) -> ApiResource:
    """Return the resource of a kind (`PersistentVolume`); raise KeyError if it has none."""
    return RESOURCES[_PLURALS[kind]]

"""The resources of the API that can be watched: where they are, and what their objects are read into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.kinds import KINDS, NAMESPACED, KubeObject

UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The pods that take room, as a field selector."""

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
}


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A resource: its plural `name`, the `version` of its group (`v1`, `apps/v1`), and the kind we read."""

    name: str
    version: str
    kind: type[KubeObject]
    field_selector: str = ""

    @property
    def path(self) -> str:
        """The path of its list over all namespaces."""
        root = "/apis/" if "/" in self.version else "/api/"
        return f"{root}{self.version}/{self.name}"

    @property
    def group(self) -> str:
        """The API group, empty for the core one."""
        return self.version.rpartition("/")[0]

    @property
    def is_namespaced(self) -> bool:
        """Tell whether its objects are in namespaces."""
        return issubclass(self.kind, NAMESPACED)


RESOURCES: Final = {
    _PLURALS[kind.KIND]: ApiResource(
        _PLURALS[kind.KIND], version, kind, UNFINISHED if kind.KIND == "Pod" else ""
    )
    for (version, _), kind in KINDS.items()
}
"""Every resource that can be watched, by its plural name."""

PODS: Final = RESOURCES["pods"]
NODES: Final = RESOURCES["nodes"]


def resource_of(kind: str) -> ApiResource:
    """Return the resource of a kind that is read (`PersistentVolume`); KeyError where there is none."""
    return RESOURCES[_PLURALS[kind]]

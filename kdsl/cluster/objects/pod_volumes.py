"""The volumes of a pod that restrict its nodes, in the form that rules read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.objects import (
    AwsDisk,
    AzureDisk,
    AzureFile,
    CinderVolume,
    CsiVolume,
    GceDisk,
    IscsiVolume,
    PortworxVolume,
    RbdVolume,
    Volume,
    VolumeSource,
    VsphereVolume,
)
from kdsl.cluster.objects.in_tree_volumes import in_tree_volumes

_EXCLUSIVE: Final = frozenset(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A volume of a pod. `kind` is its source as the API spells it: `persistentVolumeClaim`, `rbd` and so on.

    `claim_name` is the volume's claim, `id` the identity of an inline disk: pdName, volumeID, diskURI,
    volumePath, iqn, or the driver of an inline csi volume. `monitors`, `pool` and `image` are those of rbd.
    """

    name: str
    kind: str
    claim_name: str = ""
    id: str = ""
    read_only: bool = False
    monitors: frozenset[str] = frozenset()
    pool: str = ""
    image: str = ""

    @property
    def is_ephemeral(self) -> bool:
        """Return whether the claim is created for the pod and deleted with it."""
        return self.kind == "ephemeral"

    @property
    def is_exclusive(self) -> bool:
        """Return whether pods on one node may not share the volume, a disk, unless all mount it read-only."""
        return self.kind in _EXCLUSIVE

    @property
    def is_attachable(self) -> bool:
        """Return whether a CSI driver may have to attach it: a claim's volume, or a migrated plugin's
        disk.
        """
        return bool(self.claim_name) or self.kind in in_tree_volumes().by_volume

    def conflicts_with(self, other: PodVolume) -> bool:
        """Return whether pods with these volumes cannot share a node. EBS volumes are never shared."""
        if self.kind != other.kind or self.kind not in _EXCLUSIVE:
            return False
        if self.kind == "awsElasticBlockStore":
            return self.id == other.id
        if self.read_only and other.read_only:
            return False
        if self.kind != "rbd":
            return self.id == other.id
        is_same = self.pool == other.pool and self.image == other.image
        return is_same and not self.monitors.isdisjoint(other.monitors)


def read_volumes(volumes: Iterable[Volume], pod_name: str) -> tuple[PodVolume, ...]:
    """Convert the volumes of pod `pod_name` that are claims or disks; others do not restrict its nodes."""
    found = (_read(volume, pod_name) for volume in volumes)
    return tuple(volume for volume in found if volume is not None)


def _read(volume: Volume, pod_name: str) -> PodVolume | None:
    name = volume.name
    if volume.persistent_volume_claim is not None:
        claim = volume.persistent_volume_claim
        return PodVolume(name, "persistentVolumeClaim", claim.claim_name, read_only=claim.read_only)
    if volume.ephemeral is not None:
        return PodVolume(name, "ephemeral", f"{pod_name}-{name}")
    return read_disk(name, volume)


def read_disk(name: str, source: VolumeSource) -> PodVolume | None:
    """Convert the source of a disk, inline or in a persistent volume; None for other sources."""
    match source:
        case VolumeSource(gce_persistent_disk=GceDisk(pd_name=id, read_only=read_only)):
            return PodVolume(name, "gcePersistentDisk", id=id, read_only=read_only)
        case VolumeSource(aws_elastic_block_store=AwsDisk(volume_id=id, read_only=read_only)):
            return PodVolume(name, "awsElasticBlockStore", id=id, read_only=read_only)
        case VolumeSource(iscsi=IscsiVolume(iqn=id, read_only=read_only)):
            return PodVolume(name, "iscsi", id=id, read_only=read_only)
        case VolumeSource(rbd=RbdVolume(monitors, image, pool, read_only)):
            return PodVolume(name, "rbd", "", "", read_only, frozenset(monitors), pool, image)
        case VolumeSource(azure_disk=AzureDisk(disk_uri=id)):
            return PodVolume(name, "azureDisk", id=id)
        case VolumeSource(azure_file=AzureFile(share_name=id)):
            return PodVolume(name, "azureFile", id=id)
        case VolumeSource(cinder=CinderVolume(volume_id=id)):
            return PodVolume(name, "cinder", id=id)
        case VolumeSource(portworx_volume=PortworxVolume(volume_id=id)):
            return PodVolume(name, "portworxVolume", id=id)
        case VolumeSource(vsphere_volume=VsphereVolume(volume_path=id)):
            return PodVolume(name, "vsphereVolume", id=id)
        case VolumeSource(csi=CsiVolume(driver=id)):
            return PodVolume(name, "csi", id=id)
    return None

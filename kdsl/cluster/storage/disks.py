"""The disks of pods by kind, as kube-scheduler counted them before the migration to CSI drivers.

A disk is named inline, or by the persistent volume of a claim. A claim without a volume counts as one disk if
its storage class provisions that kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdsl.cluster.objects.in_tree_volumes import in_tree_volumes
from kdsl.cluster.storage.claims import PodClaim, claims_of

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog


def disks_of(pod: PodInfo, kind: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the disks of a kind, spelt as in the API (`awsElasticBlockStore`), of a pod, each once."""
    inline = (volume.id for volume in pod.volumes if volume.kind == kind)
    claimed = (_disk_of(claim, kind) for claim in claims_of(pod, catalog))
    return tuple(dict.fromkeys((*inline, *(disk for disk in claimed if disk))))


def _disk_of(claim: PodClaim, kind: str) -> str:
    if claim.volume is not None:
        disk = claim.volume.disk
        return disk.id if disk is not None and disk.kind == kind else ""
    provisioner = "" if claim.storage_class is None else claim.storage_class.provisioner
    plugin = in_tree_volumes().by_name.get(provisioner)
    # No disk has this name: it has a space in it.
    return f"claim {claim.namespace}/{claim.name}" if plugin is not None and plugin.volume == kind else ""

"""Volumes that CSI drivers attach to nodes: what a pod needs attached, what is, and how much a node takes.

Drivers have taken over the disks of cloud providers that used to be built in. On a node whose CSINode says
so, such a disk counts as its driver's. Facts of k8s.io/csi-translation-lib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.storage_objects import CSINode, PersistentVolumeClaim
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.storage.claims import class_of

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_DRIVERS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    # Their drivers attach nothing that is counted.
    "kubernetes.io/azure-file": "",
    "kubernetes.io/vsphere-volume": "",
}
_PLUGINS: Final = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "azureDisk": "kubernetes.io/azure-disk",
    "cinder": "kubernetes.io/cinder",
    "portworxVolume": "kubernetes.io/portworx-volume",
}
_ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_ANYWHERE: Final = "UNSPECIFIED"


CsiVolumes = dict[str, str]
"""Volumes as drivers know them, `driver/handle`, each with its driver."""


_Known = tuple[str, str]  # driver and handle


def csi_volumes_of(pod: PodInfo, node: str, catalog: Catalog) -> CsiVolumes:
    """Return what drivers must attach on `node` for the volumes of a pod.

    A claim without a volume counts for the driver that will provision one; a missing claim does not count.
    """
    csi_node = catalog.csi_nodes.get(node)
    found: CsiVolumes = {}
    for volume in pod.volumes:
        if volume.claim_name:
            claim = catalog.claims.get(f"{pod.namespace}/{volume.claim_name}")
            known = None if claim is None else _of_claim(claim, csi_node, catalog)
        else:
            known = _of_disk(volume, csi_node)
        if known is not None:
            driver, handle = known
            found[f"{driver}/{handle}"] = driver
    return found


def mounted_on(node: NodeInfo, catalog: Catalog) -> CsiVolumes:
    """Return what drivers have attached for the pods on a node."""
    found: CsiVolumes = {}
    for pod in node.pods:
        found.update(csi_volumes_of(pod, node.name, catalog))
    return found


def attached_to(node: str, catalog: Catalog) -> CsiVolumes:
    """Return the persistent volumes that drivers have attached to a node, whether pods use them or not."""
    found: CsiVolumes = {}
    for attachment in catalog.storage.attached_to(node):
        driver = attachment.spec.attacher
        volume = catalog.volumes.get(attachment.spec.source.persistent_volume_name)
        if driver and volume is not None and volume.spec.csi is not None:
            found[f"{driver}/{volume.spec.csi.volume_handle}"] = driver
    return found


def volume_limits(node: str, catalog: Catalog) -> dict[str, int]:
    """Return how many volumes a node takes, by driver; drivers without a limit are not there."""
    csi_node = catalog.csi_nodes.get(node)
    drivers = () if csi_node is None else csi_node.spec.drivers
    counts = ((driver.name, driver.allocatable.count) for driver in drivers)
    return {name: count for name, count in counts if count is not None}


def _of_claim(claim: PersistentVolumeClaim, csi_node: CSINode | None, catalog: Catalog) -> _Known | None:
    volume = catalog.storage.volumes.get(claim.spec.volume_name)
    if volume is not None:
        return _of_volume(volume, csi_node)
    storage_class = catalog.storage_classes.get(class_of(claim))
    if storage_class is None:
        return None
    provisioner = storage_class.provisioner
    driver = _driver(provisioner, csi_node) if provisioner in _DRIVERS else provisioner
    meta = claim.metadata
    # No driver calls a volume this: it has a space in it.
    return (driver, f"claim {meta.namespace}/{meta.name}") if driver else None


def _of_volume(volume: VolumeInfo, csi_node: CSINode | None) -> _Known | None:
    csi = volume.thing.spec.csi
    if csi is not None:
        return (csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    zones = next((volume.labels[key] for key in _ZONE_LABELS if volume.labels.get(key)), _ANYWHERE)
    return None if volume.disk is None else _of_disk(volume.disk, csi_node, zones)


def _of_disk(disk: PodVolume, csi_node: CSINode | None, zones: str = _ANYWHERE) -> _Known | None:
    driver = _driver(_PLUGINS.get(disk.kind, ""), csi_node)
    return (driver, _handle(disk, zones)) if driver else None


def _driver(plugin: str, csi_node: CSINode | None) -> str:
    """Return the driver that stands in for a built-in plugin on a node; empty where none does."""
    if csi_node is None:
        return ""
    migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")
    return _DRIVERS.get(plugin, "") if plugin in migrated else ""


def _handle(disk: PodVolume, zones: str) -> str:
    """Return what the driver calls a disk."""
    if disk.kind == "awsElasticBlockStore":
        return disk.id.rpartition("/")[2]  # aws://ZONE/ID
    if disk.kind != "gcePersistentDisk":
        return disk.id
    first, *others = zones.split("__")
    where = f"regions/{first.rpartition('-')[0]}" if others else f"zones/{first}"
    return f"projects/{_ANYWHERE}/{where}/disks/{disk.id}"

"""Volumes that CSI drivers attach to nodes: those of a pod, those attached to a node, and the node's limit.

Drivers have taken over the disks of cloud providers that used to be built in. On a node whose CSINode says
so, such a disk counts as its driver's. `in_tree_volumes.yaml` has the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.storage_objects import CSINode, PersistentVolumeClaim
from kdsl.cluster.objects.in_tree_volumes import InTreePlugin, handle_of, in_tree_volumes
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.storage.claims import class_of

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


CsiVolumes = dict[str, str]
"""Volumes as drivers know them, `driver/handle`, each with its driver."""


_Known = tuple[str, str]  # driver and handle


def csi_volumes_of(pod: PodInfo, node: str, catalog: Catalog) -> CsiVolumes:
    """Return the volumes that drivers must attach to `node` for a pod.

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
    """Return the volumes that drivers have attached for the pods on a node."""
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


def _of_claim(claim: PersistentVolumeClaim, csi_node: CSINode | None, catalog: Catalog) -> _Known | None:
    volume = catalog.storage.volumes.get(claim.spec.volume_name)
    if volume is not None:
        return _of_volume(volume, csi_node)
    storage_class = catalog.storage_classes.get(class_of(claim))
    if storage_class is None:
        return None
    provisioner = storage_class.provisioner
    plugin = in_tree_volumes().by_name.get(provisioner)
    driver = provisioner if plugin is None else _driver(plugin, csi_node)
    meta = claim.metadata
    # No driver calls a volume this: it has a space in it.
    return (driver, f"claim {meta.namespace}/{meta.name}") if driver else None


def _of_volume(volume: VolumeInfo, csi_node: CSINode | None) -> _Known | None:
    csi = volume.thing.spec.csi
    if csi is not None:
        return (csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    if volume.disk is None:
        return None
    return _of_disk(volume.disk, csi_node, in_tree_volumes().zones_in(volume.labels))


def _of_disk(disk: PodVolume, csi_node: CSINode | None, zones: str = "") -> _Known | None:
    table = in_tree_volumes()
    plugin = table.by_volume.get(disk.kind)
    driver = "" if plugin is None else _driver(plugin, csi_node)
    if plugin is None or not driver:
        return None
    return driver, handle_of(plugin, disk.id, zones or table.unknown_zone)


def _driver(plugin: InTreePlugin, csi_node: CSINode | None) -> str:
    """Return the driver that stands in for a built-in plugin on a node; empty where none does."""
    if csi_node is None:
        return ""
    migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")
    return plugin.driver if plugin.plugin in migrated else ""

"""Volumes that CSI drivers attach to nodes: those of a pod, and those attached to a node.

Drivers have taken over the disks of cloud providers that used to be built in. On a node whose CSINode says
so, such a disk counts as its driver's. `in_tree_volumes.yaml` has the table.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.in_tree_volumes import InTreePlugin, handle_of, in_tree_volumes
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.storage.claims import class_of

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog

CsiVolumes = dict[str, str]
"""Volumes as drivers know them, `driver/handle`, each with its driver."""


_Known = tuple[str, str]  # driver and handle


class _Everything:
    """Contains all built-in plugins."""

    def __contains__(self, plugin: object) -> bool:
        return True


ALL_PLUGINS: Final = _Everything()


def csi_volumes_of(pod: PodInfo, node: str, catalog: Catalog) -> CsiVolumes:
    """Return the volumes that drivers must attach to `node` for a pod.

    A claim without a volume counts for the driver that will provision one; a missing claim does not count.
    """
    return csi_volumes(pod, catalog.storage.migrated_on(node), catalog) if pod.volumes else {}


def csi_volumes(pod: PodInfo, migrated: Container[str], catalog: Catalog) -> CsiVolumes:
    """Return the volumes of a pod that drivers attach, if they have taken over these built-in plugins."""
    found: CsiVolumes = {}
    for volume in pod.volumes:
        if volume.claim_name:
            claim = catalog.claims.get(f"{pod.namespace}/{volume.claim_name}")
            known = None if claim is None else _of_claim(claim, migrated, catalog)
        else:
            known = _of_disk(volume, migrated)
        if known is not None:
            driver, handle = known
            found[f"{driver}/{handle}"] = driver
    return found


def limited_drivers(pod: PodInfo, catalog: Catalog) -> tuple[str, ...]:
    """Return the drivers that may attach volumes of a pod on some node, and that some node limits."""
    drivers = dict.fromkeys(csi_volumes(pod, ALL_PLUGINS, catalog).values())
    return tuple(filter(catalog.storage.is_limited, drivers))


def mounted_on(node: NodeInfo, catalog: Catalog) -> CsiVolumes:
    """Return the volumes that drivers have attached for the pods on a node."""
    found: CsiVolumes = {}
    for pod in node.pods:
        if pod.volumes:
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


def _of_claim(claim: PersistentVolumeClaim, migrated: Container[str], catalog: Catalog) -> _Known | None:
    volume = catalog.storage.volumes.get(claim.spec.volume_name)
    if volume is not None:
        return _of_volume(volume, migrated)
    storage_class = catalog.storage_classes.get(class_of(claim))
    if storage_class is None:
        return None
    provisioner = storage_class.provisioner
    plugin = in_tree_volumes().by_name.get(provisioner)
    driver = provisioner if plugin is None else _driver(plugin, migrated)
    meta = claim.metadata
    # No driver calls a volume this: it has a space in it.
    return (driver, f"claim {meta.namespace}/{meta.name}") if driver else None


def _of_volume(volume: VolumeInfo, migrated: Container[str]) -> _Known | None:
    csi = volume.thing.spec.csi
    if csi is not None:
        return (csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    if volume.disk is None:
        return None
    return _of_disk(volume.disk, migrated, in_tree_volumes().zones_in(volume.labels))


def _of_disk(disk: PodVolume, migrated: Container[str], zones: str = "") -> _Known | None:
    table = in_tree_volumes()
    plugin = table.by_volume.get(disk.kind)
    driver = "" if plugin is None else _driver(plugin, migrated)
    if plugin is None or not driver:
        return None
    return driver, handle_of(plugin, disk.id, zones or table.unknown_zone)


def _driver(plugin: InTreePlugin, migrated: Container[str]) -> str:
    """Return the driver that stands in for a built-in plugin; empty where none does."""
    return plugin.driver if plugin.plugin in migrated else ""

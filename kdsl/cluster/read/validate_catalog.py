"""Checks of workloads, budgets and storage; part of `validate`."""

from __future__ import annotations

from typing import Final

from kdsl.base.paths import Path
from kdsl.cluster.api.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.objects import ResourceList
from kdsl.cluster.api.storage_objects import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kdsl.cluster.api.workload_objects import (
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceQuota,
    Service,
    StatefulSet,
)
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate_affinity import check_equal_labels, check_label_selector
from kdsl.cluster.read.validate_amounts import check_amount
from kdsl.cluster.read.validate_devices import check_device_object
from kdsl.cluster.read.validate_selectors import check_node_selector
from kdsl.cluster.read.validate_words import check_known

ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Filesystem", "Block")
BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
STORAGE: Final = "storage"


def check_catalog_object(api_object: CatalogObject, problems: Problems) -> None:
    """Check the fields of a catalog object that decisions depend on."""
    match api_object:
        case Service() | ReplicationController():
            check_equal_labels(api_object.spec.selector or {}, ("spec", "selector"), problems)
        case ReplicaSet() | StatefulSet():
            if api_object.spec.selector is None:
                problems.add(InputCode.MISSING, ("spec", "selector"), "a selector is needed")
            check_label_selector(api_object.spec.selector, ("spec", "selector"), problems)
        case PodDisruptionBudget():
            check_label_selector(api_object.spec.selector, ("spec", "selector"), problems)
        case ResourceQuota():
            for name, amount in api_object.spec.hard.items():
                check_amount(amount, ("spec", "hard", name), problems)
        case PersistentVolumeClaim():
            _check_claim(api_object, problems)
        case PersistentVolume():
            _check_volume(api_object, problems)
        case StorageClass():
            _check_class(api_object, problems)
        case CSINode():
            _check_csi_node(api_object, problems)
        case CSIStorageCapacity():
            check_label_selector(api_object.node_topology, ("nodeTopology",), problems)
            check_amount(api_object.capacity, ("capacity",), problems)
            check_amount(api_object.maximum_volume_size, ("maximumVolumeSize",), problems)
        case DeviceClass() | ResourceClaim() | ResourceSlice():
            check_device_object(api_object, problems)
        case _:
            pass  # namespaces, drivers and attachments have no such fields but their names


def _check_claim(claim: PersistentVolumeClaim, problems: Problems) -> None:
    spec = claim.spec
    _check_stored(spec.access_modes, spec.volume_mode, problems)
    check_label_selector(spec.selector, ("spec", "selector"), problems)
    _check_storage(spec.resources.requests, ("spec", "resources", "requests"), problems)


def _check_volume(volume: PersistentVolume, problems: Problems) -> None:
    spec = volume.spec
    _check_stored(spec.access_modes, spec.volume_mode, problems)
    _check_storage(spec.capacity, ("spec", "capacity"), problems)
    if spec.node_affinity.required is not None:
        check_node_selector(spec.node_affinity.required, ("spec", "nodeAffinity", "required"), problems)


def _check_stored(access_modes: list[str], volume_mode: str, problems: Problems) -> None:
    for i, mode in enumerate(access_modes):
        check_known(mode, ACCESS_MODES, ("spec", "accessModes", i), problems, "access mode")
    if volume_mode:
        check_known(volume_mode, VOLUME_MODES, ("spec", "volumeMode"), problems)


def _check_class(storage_class: StorageClass, problems: Problems) -> None:
    if not storage_class.provisioner:
        problems.add(InputCode.MISSING, ("provisioner",), "a storage class needs a provisioner")
    if mode := storage_class.volume_binding_mode:
        check_known(mode, BINDING_MODES, ("volumeBindingMode",), problems)


def _check_csi_node(node: CSINode, problems: Problems) -> None:
    names: set[str] = set()
    for i, driver in enumerate(node.spec.drivers):
        path: Path = ("spec", "drivers", i)
        if not driver.name:
            problems.add(InputCode.MISSING, (*path, "name"), "a driver needs a name")
        elif driver.name in names:
            title = f"a second driver is named `{driver.name}`"
            problems.add(InputCode.DUPLICATE_VALUE, (*path, "name"), title)
        names.add(driver.name)
        if driver.allocatable.count is not None and driver.allocatable.count < 0:
            title = f"{driver.allocatable.count} is not a number of volumes"
            problems.add(InputCode.VALUE, (*path, "allocatable", "count"), title, "write 0 or more")


def _check_storage(amounts: ResourceList, path: Path, problems: Problems) -> None:
    check_amount(amounts.get(STORAGE), (*path, STORAGE), problems)

"""Indexes of the catalog's volumes, attachments and CSI nodes, in the form that readers use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from kdsl.base.change_log import ChangeLog
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.storage_objects import CSINode, PersistentVolume, VolumeAttachment
from kdsl.cluster.objects.volumes import VolumeInfo

_NO_VOLUMES: Final[Mapping[str, VolumeInfo]] = MappingProxyType({})
_NO_ATTACHMENTS: Final[Mapping[str, VolumeAttachment]] = MappingProxyType({})
_NO_LIMITS: Final[Mapping[str, int]] = MappingProxyType({})
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_NO_PLUGINS: Final = frozenset[str]()


class StorageIndex:
    """The indexes. Only the catalog writes to them."""

    def __init__(self) -> None:
        self._volumes: dict[str, VolumeInfo] = {}
        self._classes: dict[str, dict[str, VolumeInfo]] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._attached: dict[str, dict[str, VolumeAttachment]] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._limited: Counter[str] = Counter()
        self._migrated: dict[str, frozenset[str]] = {}
        self.csi_nodes_version = 0
        self.changes: ChangeLog[tuple[str, str]] = ChangeLog()
        """The kind and key of each changed object."""

    def copy(self) -> StorageIndex:
        """Return an independent index with the same contents."""
        other = StorageIndex()
        other._volumes, other._attachments = dict(self._volumes), dict(self._attachments)
        other._classes = {name: dict(volumes) for name, volumes in self._classes.items()}
        other._attached = {node: dict(attached) for node, attached in self._attached.items()}
        other._limits, other._migrated = dict(self._limits), dict(self._migrated)
        other._limited = Counter(self._limited)
        other.csi_nodes_version = self.csi_nodes_version
        return other

    @property
    def volumes(self) -> Mapping[str, VolumeInfo]:
        """The volumes by name."""
        return self._volumes

    def of_class(self, storage_class: str) -> Collection[VolumeInfo]:
        """Return the volumes of a storage class; volumes without one are in the class with the empty name."""
        return self._classes.get(storage_class, _NO_VOLUMES).values()

    def attached_to(self, node: str) -> Collection[VolumeAttachment]:
        """Return the attachments of a node, complete or in progress."""
        return self._attached.get(node, _NO_ATTACHMENTS).values()

    def node_of_attachment(self, name: str) -> str | None:
        """Return the node of an attachment, None if there is none of that name."""
        attachment = self._attachments.get(name)
        return None if attachment is None else attachment.spec.node_name

    def limits_of(self, node: str) -> Mapping[str, int]:
        """Return how many volumes a node takes, by CSI driver; drivers without a limit are not there."""
        return self._limits.get(node, _NO_LIMITS)

    def migrated_on(self, node: str) -> frozenset[str]:
        """Return the built-in volume plugins that CSI drivers have taken over on a node."""
        return self._migrated.get(node, _NO_PLUGINS)

    def is_limited(self, driver: str) -> bool:
        """Return whether a CSI driver has a limit on some node."""
        return self._limited[driver] > 0

    def put(self, api_object: CatalogObject) -> None:
        """Add or update a volume, an attachment or a CSI node; ignore other objects."""
        name = api_object.metadata.name
        self.remove(api_object.KIND, name)
        if isinstance(api_object, PersistentVolume):
            volume = self._volumes[name] = VolumeInfo.of(api_object)
            self._classes.setdefault(volume.storage_class_name, {})[name] = volume
        elif isinstance(api_object, VolumeAttachment):
            self._attachments[name] = api_object
            self._attached.setdefault(api_object.spec.node_name, {})[name] = api_object
        elif isinstance(api_object, CSINode):
            counts = {driver.name: driver.allocatable.count for driver in api_object.spec.drivers}
            limits = {driver: count for driver, count in counts.items() if count is not None}
            if limits:
                self._limits[name] = limits
                self._limited.update(limits.keys())
            migrated = api_object.metadata.annotations.get(_MIGRATED, "")
            if migrated:
                self._migrated[name] = frozenset(migrated.split(","))
            self.csi_nodes_version += 1

    def remove(self, kind: str, name: str) -> None:
        """Remove a volume, an attachment or a CSI node, if there is one of that name."""
        if kind == PersistentVolume.KIND and name in self._volumes:
            storage_class = self._volumes.pop(name).storage_class_name
            del self._classes[storage_class][name]
            if not self._classes[storage_class]:
                del self._classes[storage_class]
        elif kind == VolumeAttachment.KIND and name in self._attachments:
            node = self._attachments.pop(name).spec.node_name
            del self._attached[node][name]
            if not self._attached[node]:
                del self._attached[node]
        elif kind == CSINode.KIND:
            self._limited -= Counter(self._limits.pop(name, _NO_LIMITS).keys())
            self._migrated.pop(name, None)
            self.csi_nodes_version += 1

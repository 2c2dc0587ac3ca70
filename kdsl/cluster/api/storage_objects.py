"""Volumes, claims and descriptions of storage, with the fields that kdsl reads.

`Catalog` holds them; see `objects` for the way structs are filled.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kdsl.cluster.api.objects import (
    LabelSelectorSpec,
    NodeSelectorSpec,
    ObjectMeta,
    Part,
    ResourceList,
    ResourceRequirements,
    VolumeSource,
    WrittenQuantity,
)


class PersistentVolumeClaimSpec(Part, frozen=True):
    """`storage_class_name` is None where it is not written, and empty for a claim without a class."""

    access_modes: list[str] = field(default_factory=list)
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelectorSpec | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str = ""
    volume_mode: str = ""
    volume_name: str = ""


class ClaimStatus(Part, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Part, frozen=True):
    KIND: ClassVar[str] = "PersistentVolumeClaim"

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimReference(Part, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Part, frozen=True):
    required: NodeSelectorSpec | None = None


class PersistentVolumeSpec(VolumeSource, frozen=True):
    access_modes: list[str] = field(default_factory=list)
    capacity: ResourceList = field(default_factory=dict)
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity = VolumeNodeAffinity()
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    volume_mode: str = ""


class VolumeStatus(Part, frozen=True):
    phase: str = ""


class PersistentVolume(Part, frozen=True):
    KIND: ClassVar[str] = "PersistentVolume"

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyLabelRequirement(Part, frozen=True):
    key: str = ""
    values: list[str] = field(default_factory=list)


class TopologyTerm(Part, frozen=True):
    match_label_expressions: list[TopologyLabelRequirement] = field(default_factory=list)


class StorageClass(Part, frozen=True):
    KIND: ClassVar[str] = "StorageClass"

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: list[TopologyTerm] = field(default_factory=list)


class VolumeNodeResources(Part, frozen=True):
    """The number of a driver's volumes that a node takes; None without a limit."""

    count: int | None = None


class CSINodeDriver(Part, frozen=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: list[str] = field(default_factory=list)
    allocatable: VolumeNodeResources = VolumeNodeResources()


class CSINodeSpec(Part, frozen=True):
    drivers: list[CSINodeDriver] = field(default_factory=list)


class CSINode(Part, frozen=True):
    KIND: ClassVar[str] = "CSINode"

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Part, frozen=True):
    storage_capacity: bool = False


class CSIDriver(Part, frozen=True):
    KIND: ClassVar[str] = "CSIDriver"

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Part, frozen=True):
    """`node_topology` selects the nodes by their labels; None selects no node."""

    KIND: ClassVar[str] = "CSIStorageCapacity"

    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelectorSpec | None = None
    storage_class_name: str = ""
    capacity: WrittenQuantity | None = None
    maximum_volume_size: WrittenQuantity | None = None


class VolumeAttachmentSource(Part, frozen=True):
    """`inline_volume_spec` is the translation of an inline volume of a pod."""

    persistent_volume_name: str = ""
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Part, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Part, frozen=True):
    KIND: ClassVar[str] = "VolumeAttachment"

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()

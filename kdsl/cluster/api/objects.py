"""Kubernetes API objects, with the fields that kdsl reads.

`kdsl.cluster.read` fills and completes them, `kdsl.cluster.objects` holds the form that rules read.

The structs hold only fields that rules, the cache or the cycle use; all other fields of an object are
ignored. Pods, nodes and namespaces are here, `workload_objects` and `storage_objects` hold the others. To
read a further kind, add its struct, its name in `kinds`, its checks to `read/validate.py` and its place in
the `Catalog`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta, Struct, field

from kdsl.base.quantity import Quantity, parse_quantity

WrittenQuantity: TypeAlias = str | int | float
ResourceList: TypeAlias = dict[str, WrittenQuantity]
"""Quantities as they are written, by resource name: `quantity` parses one."""

Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True)]


def quantity(written: WrittenQuantity) -> Quantity:
    """Parse a quantity of an object, a string or a number; raises ValueError for an invalid one."""
    return parse_quantity(written if isinstance(written, str) else repr(written))


class Part(Struct, frozen=True, rename="camel"):
    """A part of an object: absent fields have their empty value."""


class OwnerReference(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Part, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None


class LabelSelectorRequirement(Part, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelectorSpec(Part, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class ResourceRequirements(Part, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Part, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class SecurityContext(Part, frozen=True):
    privileged: bool = False


class Container(Part, frozen=True):
    name: str = ""
    image: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    security_context: SecurityContext = SecurityContext()


class TolerationSpec(Part, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorRequirement(Part, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(Part, frozen=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelectorSpec(Part, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Part, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Part, frozen=True):
    required: NodeSelectorSpec | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredSchedulingTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTermSpec(Part, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelectorSpec | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelectorSpec | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Part, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTermSpec = PodAffinityTermSpec()


class PodAffinity(Part, frozen=True):
    """Affinity or anti-affinity to pods, which have one form."""

    required: list[PodAffinityTermSpec] = field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Part, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class TopologySpreadConstraint(Part, frozen=True):
    topology_key: str = ""
    max_skew: int = 0
    min_domains: int | None = None
    when_unsatisfiable: str = ""
    label_selector: LabelSelectorSpec | None = None
    match_label_keys: list[str] = []
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


class SchedulingGate(Part, frozen=True):
    name: str = ""


class ImageVolume(Part, frozen=True):
    reference: str = ""


class ClaimVolume(Part, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Part, frozen=True):
    """A volume whose claim is created for the pod, with the name `POD-VOLUME`."""


class GceDisk(Part, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AwsDisk(Part, frozen=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(Part, frozen=True):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")


class AzureFile(Part, frozen=True):
    share_name: str = ""


class CinderVolume(Part, frozen=True):
    volume_id: str = field(default="", name="volumeID")


class PortworxVolume(Part, frozen=True):
    volume_id: str = field(default="", name="volumeID")


class VsphereVolume(Part, frozen=True):
    volume_path: str = ""


class IscsiVolume(Part, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class RbdVolume(Part, frozen=True):
    monitors: list[str] = []
    image: str = ""
    pool: str = ""
    read_only: bool = False


class CsiVolume(Part, frozen=True):
    """A volume of a CSI driver; `volume_handle` identifies a persistent one."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSource(Part, frozen=True):
    """The sources that inline volumes of pods and persistent volumes share."""

    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdVolume | None = None
    csi: CsiVolume | None = None


class Volume(VolumeSource, frozen=True):
    name: str = ""
    image: ImageVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class PodResourceClaim(Part, frozen=True):
    """A claim of devices in a pod: a claim by its name, or one that is created from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Part, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    scheduling_gates: list[SchedulingGate] = []
    tolerations: list[TolerationSpec] = []
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements = ResourceRequirements()
    host_network: bool = False
    volumes: list[Volume] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    resource_claims: list[PodResourceClaim] = []


class Condition(Part, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerStatus(Part, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Part, frozen=True):
    """The claim that was created from a template; without a name the pod needs none."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(Part, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: Timestamp | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class Pod(Part, frozen=True):
    KIND: ClassVar[str] = "Pod"

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class TaintSpec(Part, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Part, frozen=True):
    unschedulable: bool = False
    taints: list[TaintSpec] = []
    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")


class ContainerImage(Part, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(Part, frozen=True):
    capacity: ResourceList = {}
    allocatable: ResourceList | None = None
    images: list[ContainerImage] = []
    conditions: list[Condition] = []


class Node(Part, frozen=True):
    KIND: ClassVar[str] = "Node"

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Part, frozen=True):
    KIND: ClassVar[str] = "Namespace"

    metadata: ObjectMeta = ObjectMeta()

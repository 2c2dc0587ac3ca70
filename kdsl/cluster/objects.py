"""Kubernetes API objects, as far as kdsl reads them.

`decode` fills them, `defaults` completes them, `pod` and `node` use them.

Only the fields that rules, the cache or the cycle look at are here; everything else in an object is passed
over. To read a further kind, add its struct here, its name to `KINDS` and its checks to `validate`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final, TypeAlias

from msgspec import Meta, Struct, field

from kdsl.base.quantity import Quantity, parse_quantity

WrittenQuantity: TypeAlias = str | int | float
ResourceList: TypeAlias = dict[str, WrittenQuantity]
"""Quantities as they are written, by resource name: `quantity` reads one."""

Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True)]


def quantity(written: WrittenQuantity) -> Quantity:
    """Read a quantity out of an object, where it may be a string or a number; ValueError where it is none."""
    return parse_quantity(written if isinstance(written, str) else repr(written))


class _Part(Struct, frozen=True, rename="camel"):
    """A part of an object: absent fields have their empty value."""


class ObjectMeta(_Part, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None


class ResourceRequirements(_Part, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(_Part, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class Container(_Part, frozen=True):
    name: str = ""
    image: str = ""
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class TolerationSpec(_Part, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorRequirement(_Part, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(_Part, frozen=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelectorSpec(_Part, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(_Part, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(_Part, frozen=True):
    required: NodeSelectorSpec | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredSchedulingTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(_Part, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()


class SchedulingGate(_Part, frozen=True):
    name: str = ""


class ImageVolume(_Part, frozen=True):
    reference: str = ""


class Volume(_Part, frozen=True):
    name: str = ""
    image: ImageVolume | None = None


class PodSpec(_Part, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    priority: int | None = None
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


class Condition(_Part, frozen=True):
    type: str = ""
    reason: str = ""


class ContainerStatus(_Part, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodStatus(_Part, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class Pod(_Part, frozen=True):
    KIND: ClassVar[str] = "Pod"

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class TaintSpec(_Part, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(_Part, frozen=True):
    unschedulable: bool = False
    taints: list[TaintSpec] = []


class ContainerImage(_Part, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(_Part, frozen=True):
    capacity: ResourceList = {}
    allocatable: ResourceList | None = None
    images: list[ContainerImage] = []


class Node(_Part, frozen=True):
    KIND: ClassVar[str] = "Node"

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(_Part, frozen=True):
    KIND: ClassVar[str] = "Namespace"

    metadata: ObjectMeta = ObjectMeta()


KubeObject: TypeAlias = Pod | Node | Namespace

KINDS: Final[dict[tuple[str, str], type[Pod] | type[Node] | type[Namespace]]] = {
    ("v1", kind.KIND): kind for kind in (Pod, Node, Namespace)
}
"""The kinds that are read, by apiVersion and kind."""

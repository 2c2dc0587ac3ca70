"""Objects of dynamic resource allocation (`resource.k8s.io/v1`), with the fields that kdsl reads.

A claim asks for devices, classes select devices, and slices are the reports of drivers: the devices of a
pool. `Catalog` holds them; see `objects` for the way structs are filled.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import field

from kdsl.cluster.api.objects import (
    NodeSelectorSpec,
    ObjectMeta,
    Part,
    ResourceList,
    Timestamp,
    WrittenQuantity,
)

EXACT_COUNT: Final = "ExactCount"
ALL_DEVICES: Final = "All"
"""The modes of a request: a number of devices, or all that are selected."""


class CelSelector(Part, frozen=True):
    expression: str = ""


class DeviceSelector(Part, frozen=True):
    """A condition on devices; None is a form of selector that kdsl does not know."""

    cel: CelSelector | None = None


class OpaqueConfiguration(Part, frozen=True):
    """Parameters that a driver reads; the scheduler copies them."""

    driver: str = ""
    parameters: Any = None


class ClassConfiguration(Part, frozen=True, omit_defaults=True):
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Part, frozen=True):
    selectors: list[DeviceSelector] = field(default_factory=list)
    config: list[ClassConfiguration] = field(default_factory=list)
    extended_resource_name: str = ""


class DeviceClass(Part, frozen=True):
    KIND: ClassVar[str] = "DeviceClass"

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Part, frozen=True):
    requests: ResourceList = field(default_factory=dict)


class DeviceToleration(Part, frozen=True, omit_defaults=True):
    """A toleration of device taints; `toleration_seconds` delays evictions, which the scheduler copies."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceRequest(Part, frozen=True):
    """An exact request, or one of the alternatives of `first_available`, which have names."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = field(default_factory=list)
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool = False
    tolerations: list[DeviceToleration] = field(default_factory=list)
    capacity: CapacityRequirements | None = None


class ClaimRequest(Part, frozen=True):
    """A request of a claim: `exactly`, or the first of the alternatives that can be had."""

    name: str = ""
    exactly: DeviceRequest | None = None
    first_available: list[DeviceRequest] = field(default_factory=list)


class DeviceConstraint(Part, frozen=True):
    """The devices of these requests, or of all if there are none, agree or differ in an attribute."""

    requests: list[str] = field(default_factory=list)
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(Part, frozen=True, omit_defaults=True):
    requests: list[str] = field(default_factory=list)
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Part, frozen=True):
    requests: list[ClaimRequest] = field(default_factory=list)
    constraints: list[DeviceConstraint] = field(default_factory=list)
    config: list[ClaimConfiguration] = field(default_factory=list)


class ResourceClaimSpec(Part, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Part, frozen=True, omit_defaults=True):
    """A device for a request, `name` or `name/alternative`."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: list[DeviceToleration] = field(default_factory=list)
    binding_conditions: list[str] = field(default_factory=list)
    binding_failure_conditions: list[str] = field(default_factory=list)
    share_id: str = field(default="", name="shareID")
    consumed_capacity: ResourceList = field(default_factory=dict)


class AllocatedConfiguration(Part, frozen=True, omit_defaults=True):
    """A configuration for the driver: `source` is `FromClass` or `FromClaim`."""

    source: str = ""
    requests: list[str] = field(default_factory=list)
    opaque: OpaqueConfiguration | None = None


class AllocatedDevices(Part, frozen=True, omit_defaults=True):
    results: list[AllocatedDevice] = field(default_factory=list)
    config: list[AllocatedConfiguration] = field(default_factory=list)


class Allocation(Part, frozen=True, omit_defaults=True):
    """The devices of a claim; `node_selector` selects the nodes where they can be used, None all nodes."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelectorSpec | None = None
    allocation_timestamp: Timestamp | None = None


class ConsumerReference(Part, frozen=True):
    """A user of a claim: a pod, if `resource` is `pods`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(Part, frozen=True):
    """The state of an allocated device, as its driver reports it."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: list[DeviceCondition] = field(default_factory=list)


class ResourceClaimStatus(Part, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[ConsumerReference] = field(default_factory=list)
    devices: list[DeviceStatus] = field(default_factory=list)


class ResourceClaim(Part, frozen=True):
    KIND: ClassVar[str] = "ResourceClaim"

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourcePool(Part, frozen=True):
    """The pool of a slice: only slices of the highest generation count, and `resource_slice_count` of them
    are the whole pool.
    """

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(Part, frozen=True):
    """An attribute of a device: one of the fields is written."""

    integer: int | None = field(default=None, name="int")
    boolean: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Part, frozen=True):
    min: WrittenQuantity | None = None
    max: WrittenQuantity | None = None
    step: WrittenQuantity | None = None


class CapacityPolicy(Part, frozen=True):
    """The amounts that requests get of a device that several claims share: those of `valid_values`, or those
    in `valid_range`; `default` for requests that name none.
    """

    default: WrittenQuantity | None = None
    valid_values: list[WrittenQuantity] = field(default_factory=list)
    valid_range: CapacityRange | None = None


class DeviceCapacity(Part, frozen=True):
    value: WrittenQuantity = 0
    request_policy: CapacityPolicy | None = None


class Counter(Part, frozen=True):
    value: WrittenQuantity = 0


class CounterSet(Part, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterConsumption(Part, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceTaint(Part, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Part, frozen=True):
    """A device of a slice. `node_name`, `node_selector` and `all_nodes` are set where the slice leaves the
    nodes to its devices.
    """

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: list[CounterConsumption] = field(default_factory=list)
    node_name: str = ""
    node_selector: NodeSelectorSpec | None = None
    all_nodes: bool = False
    taints: list[DeviceTaint] = field(default_factory=list)
    binds_to_node: bool = False
    binding_conditions: list[str] = field(default_factory=list)
    binding_failure_conditions: list[str] = field(default_factory=list)
    allow_multiple_allocations: bool = False


class ResourceSliceSpec(Part, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelectorSpec | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = field(default_factory=list)
    shared_counters: list[CounterSet] = field(default_factory=list)


class ResourceSlice(Part, frozen=True):
    KIND: ClassVar[str] = "ResourceSlice"

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()

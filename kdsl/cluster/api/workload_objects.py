"""Services, workloads and disruption budgets, with the fields that kdsl reads: they group pods.

`Catalog` holds them; see `objects` for the way structs are filled.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from kdsl.cluster.api.objects import LabelSelectorSpec, ObjectMeta, Part, ResourceList, Timestamp


class ServiceSpec(Part, frozen=True):
    selector: dict[str, str] | None = None


class Service(Part, frozen=True):
    KIND: ClassVar[str] = "Service"

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class PodTemplate(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class ReplicationControllerSpec(Part, frozen=True):
    selector: dict[str, str] | None = None
    template: PodTemplate = PodTemplate()


class ReplicationController(Part, frozen=True):
    KIND: ClassVar[str] = "ReplicationController"

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(Part, frozen=True):
    selector: LabelSelectorSpec | None = None


class ReplicaSet(Part, frozen=True):
    KIND: ClassVar[str] = "ReplicaSet"

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Part, frozen=True):
    KIND: ClassVar[str] = "StatefulSet"

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ResourceQuotaSpec(Part, frozen=True):
    hard: ResourceList = field(default_factory=dict)


class ResourceQuota(Part, frozen=True):
    KIND: ClassVar[str] = "ResourceQuota"

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()


class PodDisruptionBudgetSpec(Part, frozen=True):
    selector: LabelSelectorSpec | None = None


class PodDisruptionBudgetStatus(Part, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, Timestamp] = field(default_factory=dict)


class PodDisruptionBudget(Part, frozen=True):
    KIND: ClassVar[str] = "PodDisruptionBudget"

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()

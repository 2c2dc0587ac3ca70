"""The groups that pods belong to: the pods that one service or one workload selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kdsl.cluster.objects.label_selectors import LabelSelector

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods of a namespace that `selector` selects."""

    namespace: str
    selector: LabelSelector

    READ_OF_PODS: ClassVar = ("labels", "namespace", "deletion_timestamp")
    """The fields of a pod that `includes` reads."""

    def includes(self, pod: PodInfo) -> bool:
        """Return whether `pod` belongs to the group and is not being deleted."""
        is_near = pod.namespace == self.namespace and not pod.is_terminating
        return is_near and self.selector.matches(pod.labels)


def service_groups(pod: PodInfo, catalog: Catalog) -> tuple[PodGroup, ...]:
    """Return the groups of the services that select `pod`, in the order in which the services were added."""
    return tuple(PodGroup(pod.namespace, one) for one in catalog.service_selectors(pod))


def workload_groups(pod: PodInfo, catalog: Catalog) -> tuple[PodGroup, ...]:
    """Return the groups of the ReplicationControllers, ReplicaSets and StatefulSets that select `pod`.

    A workload without a selector, or with an empty one, selects no pod.
    """
    return tuple(
        PodGroup(pod.namespace, one) for one in catalog.workload_selectors(pod) if not one.selects_everything
    )

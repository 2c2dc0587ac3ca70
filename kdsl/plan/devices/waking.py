"""The events after which devices may accept a pod that they rejected, and whether one brings anything new.

A node reports to its handshake every minute, and a pod with cards changes its status several times: neither
changes what a device reads.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.base.events import Action, EventPattern, Resource
from kdsl.check.analyses.cures import device_cures
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import Fns
from kdsl.cluster.api.workload_objects import ResourceQuota
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.plan.devices.inventories import Inventories


class Waking:
    """The events that wake the pods which the devices of a profile reject."""

    def __init__(
        self, devices: Iterable[CheckedDevice], fns: Fns, records: Iterable[str], inventories: Inventories
    ) -> None:
        """`records` are the annotations with the cards of pods."""
        self._records, self._inventories = frozenset(records), inventories
        cures = [device_cures(device, fns) for device in devices]
        self._waits_for_cards, self._waits_for_pods = (any(each) for each in zip(*cures, strict=True))

    def events(self) -> tuple[EventPattern, ...]:
        """Return the events that may help a pod."""
        actions = Action.DELETE | Action.POD_OTHER
        if self._waits_for_cards:
            actions |= Action.ADD
        if self._waits_for_pods:
            actions |= Action.ADD | Action.POD_SCALE_UP | Action.POD_SCALE_DOWN
        return (
            EventPattern(
                Resource.NODE,
                # Cards of pods on a node that is gone count for no quota.
                Action.ADD
                | Action.DELETE
                | Action.NODE_ALLOCATABLE
                | Action.NODE_ANNOTATION
                | Action.NODE_LABEL
                | Action.NODE_OTHER,
            ),
            EventPattern(Resource.ASSIGNED_POD, actions),
            EventPattern(Resource.TARGET_POD),
            EventPattern(Resource.RESOURCE_QUOTA),
        )

    def is_news(self, event: ClusterEvent) -> bool:
        """Return whether an event may help any pod: of pods on nodes, a change of those with cards, and what
        the conditions of the devices read beside that.
        """
        before, after = event.before, event.after
        if isinstance(before, NodeFacts) and isinstance(after, NodeFacts):
            return not self._inventories.reads_same(before, after)
        if event.resource is not Resource.ASSIGNED_POD:
            return True
        if isinstance(before, PodInfo) and isinstance(after, PodInfo) and self._uses_same(before, after):
            return False
        seen = (before, after) if self._waits_for_cards else (before,)
        return self._waits_for_pods or any(isinstance(pod, PodInfo) and self._has_cards(pod) for pod in seen)

    def is_recorded(self, pod: PodInfo) -> bool:
        """Return whether a pod has cards by its record."""
        return not self._records.isdisjoint(pod.annotations)

    def _has_cards(self, pod: PodInfo) -> bool:
        """Return whether a pod has cards, or some were kept for it because it was nominated."""
        is_kept = not pod.node_name and bool(pod.device_containers)
        return is_kept or self.is_recorded(pod)

    def _uses_same(self, before: PodInfo, after: PodInfo) -> bool:
        """Return whether a pod holds the same cards as before, and requests the same amounts."""
        return (
            before.annotations == after.annotations
            and before.device_containers == after.device_containers
            and (not self._waits_for_pods or before.usage == after.usage)
        )


def gives_quota(event: ClusterEvent, namespace: str) -> bool:
    """Return whether a changed quota may leave the pods of a namespace more: a new one never does."""
    quota = event.before
    return isinstance(quota, ResourceQuota) and quota.metadata.namespace == namespace


def is_node_gone(event: ClusterEvent) -> bool:
    """Return whether a node has gone: what its pods had of a quota is free, but no card."""
    return event.resource is Resource.NODE and event.after is None

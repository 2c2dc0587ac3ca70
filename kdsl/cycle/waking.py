"""Whether an event gives a sleeping pod another attempt, and how soon: kube-scheduler's requeue decision."""

from __future__ import annotations

from enum import IntEnum

from kdsl.base.events import Resource
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import UNDECLARED


class Urgency(IntEnum):
    """When a pod is tried again."""

    NONE = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


def urgency_of(pending: PendingPod, table: HookTable | None, event: ClusterEvent) -> Urgency:
    """Return what an event means for a pod that sleeps.

    Those who rejected it decide, each for the events it waits for; a plugin that waits for something on its
    way gets the pod tried at once. What stands behind a gate is looked at again for the events of the gate.
    """
    pod = pending.queued.pod
    if event.target and event.target != pod.key:
        return Urgency.NONE
    if event.label == "ForceActivate":
        return Urgency.AT_ONCE
    if event.resource is not Resource.TARGET_POD and event.pod is not None and event.pod.key == pod.key:
        # Its own reservation, taken or given back, tells a pod nothing.
        return Urgency.NONE
    if event.priority is not None and pod.priority > event.priority:
        return Urgency.NONE
    if pending.refusal is not None:
        return (
            Urgency.AFTER_BACKOFF if _wakes(table, pending.refusal.plugin, pending, event) else Urgency.NONE
        )
    rejectors = pending.rejectors
    if any(_wakes(table, plugin, pending, event) for plugin in rejectors.pending):
        return Urgency.AT_ONCE
    if any(_wakes(table, plugin, pending, event) for plugin in rejectors.unschedulable):
        return Urgency.AFTER_BACKOFF
    return Urgency.NONE


def _wakes(table: HookTable | None, plugin: str, pending: PendingPod, event: ClusterEvent) -> bool:
    wakes = (UNDECLARED,) if table is None else table.wakes.get(plugin, (UNDECLARED,))
    return any(wake.concerns(event) and wake.is_worth_it(pending.queued.pod, event) for wake in wakes)

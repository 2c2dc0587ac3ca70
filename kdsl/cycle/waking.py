"""Decides whether an event gives a sleeping pod another attempt, and when: kube-scheduler's requeue
decision.
"""

from __future__ import annotations

from enum import IntEnum

from kdsl.base.events import Resource
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import UNDECLARED, Wake


class Urgency(IntEnum):
    """The time at which a pod is tried again."""

    NONE = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


Waits = tuple[tuple[Wake, Urgency], ...]
"""The events that a pod waits for, with the urgency of each, the most urgent first."""


def waits_of(pending: PendingPod, table: HookTable | None) -> Waits:
    """Return the events that a sleeping pod waits for.

    The plugins that rejected the pod decide, each for its own events; a plugin that waits for an operation
    under way makes the pod tried at once. A gated pod is checked again at the events of its gate.
    """
    if pending.refusal is not None:
        plugins = [(pending.refusal.plugin, Urgency.AFTER_BACKOFF)]
    else:
        plugins = [(plugin, Urgency.AT_ONCE) for plugin in pending.rejectors.pending]
        plugins += [(plugin, Urgency.AFTER_BACKOFF) for plugin in pending.rejectors.unschedulable]
    known = table.wakes if table else {}
    return tuple((wake, urgency) for one, urgency in plugins for wake in known.get(one, (UNDECLARED,)))


def is_affected(pending: PendingPod, event: ClusterEvent) -> bool:
    """Return whether an event can wake a pod, whatever it waits for."""
    pod = pending.queued.pod
    if event.target:
        return event.target == pod.key
    if event.resource is not Resource.TARGET_POD and event.pod is not None and event.pod.key == pod.key:
        # Its own reservation, made or undone, does not wake a pod.
        return False
    return event.priority is None or pod.priority <= event.priority


def urgency_of(pending: PendingPod, table: HookTable | None, event: ClusterEvent) -> Urgency:
    """Return the effect of an event on a pod that sleeps."""
    if not is_affected(pending, event):
        return Urgency.NONE
    if event.label == "ForceActivate":
        return Urgency.AT_ONCE
    pod = pending.queued.pod
    for wake, urgency in waits_of(pending, table):
        if wake.concerns(event) and wake.is_worth_it(pod, event):
            return urgency
    return Urgency.NONE

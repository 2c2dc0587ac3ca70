"""Decides whether an event gives a sleeping pod another attempt, and when: kube-scheduler's requeue
decision.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum

from kdsl.base.events import Resource
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import UNDECLARED


class Urgency(IntEnum):
    """The time at which a pod is tried again."""

    NONE = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


def urgency_of(pending: PendingPod, table: HookTable | None, event: ClusterEvent) -> Urgency:
    """Return the effect of an event on a sleeping pod.

    The plugins that rejected the pod decide, each for its own events; a plugin that waits for an operation
    under way makes the pod tried at once. A gated pod is checked again at the events of its gate.
    """
    pod = pending.queued.pod
    if event.target and event.target != pod.key:
        return Urgency.NONE
    if event.label == "ForceActivate":
        return Urgency.AT_ONCE
    if event.resource is not Resource.TARGET_POD and event.pod is not None and event.pod.key == pod.key:
        # Its own reservation, made or undone, does not wake a pod.
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


def urgency_for_kind(
    pending: PendingPod, table: HookTable | None, event: ClusterEvent, known: dict[Hashable, Urgency]
) -> Urgency:
    """Return the effect of an event on a sleeping pod; `known` are the answers for kinds of pods."""
    is_own = event.pod is not None and event.pod.key == pending.key
    if pending.kind is None or pending.refusal is not None or is_own:
        return urgency_of(pending, table, event)
    kind = pending.kind, pending.rejectors
    urgency = known.get(kind)
    if urgency is None:
        urgency = known[kind] = urgency_of(pending, table, event)
    return urgency

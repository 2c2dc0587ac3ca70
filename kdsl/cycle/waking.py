"""Decides whether an event gives a sleeping pod another attempt, and when: kube-scheduler's requeue
decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from kdsl.base.events import Action, EventPattern, Resource, merged
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.pending import PendingPod, Rejectors
from kdsl.hooks.table import HookTable
from kdsl.hooks.wake import UNDECLARED, Wake


class Urgency(IntEnum):
    """The time at which a pod is tried again."""

    NONE = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


FORCE_ACTIVATE: Final = "ForceActivate"
_DEPARTURE: Final = EventPattern(Resource.ASSIGNED_POD, Action.DELETE)
_NEW_NODE: Final = Wake((EventPattern(Resource.NODE, Action.ADD),))

Waits = tuple[tuple[Wake, Urgency], ...]
"""The events that a pod waits for, with the urgency of each, the most urgent first."""


def waits_of(pending: PendingPod, table: HookTable | None) -> Waits:
    """Return the events that a sleeping pod waits for.

    The plugins that rejected the pod decide, each for its own events; a plugin that waits for an operation
    under way makes the pod tried at once. A gated pod is checked again at the events of its gate. A pod that
    made no room waits for the events that may let it do so, and one without any node for a node.
    """
    rejectors = pending.rejectors
    if pending.refusal is not None:
        plugins = [(pending.refusal.plugin, Urgency.AFTER_BACKOFF)]
    else:
        plugins = [(plugin, Urgency.AT_ONCE) for plugin in rejectors.pending]
        plugins += [(plugin, Urgency.AFTER_BACKOFF) for plugin in rejectors.unschedulable]
    known = table.wakes if table else {}
    waits = [(wake, urgency) for one, urgency in plugins for wake in known.get(one, (UNDECLARED,))]
    if rejectors.lacks_nodes and pending.refusal is None:
        waits.append((_NEW_NODE, Urgency.AFTER_BACKOFF))
    if table is not None and pending.refusal is None:
        room = _room_waits(rejectors, table)
        waits += [(wake, Urgency.AFTER_BACKOFF) for wake in room if wake.patterns]
    return tuple(waits)


def _room_waits(rejectors: Rejectors, table: HookTable) -> Iterator[Wake]:
    """Yield the events that may let a pod make room."""
    if not rejectors.blockers:
        return
    preemption, *blockers = rejectors.blockers
    yield from table.wakes.get(preemption, ())
    for one in dict.fromkeys((*rejectors.all, *blockers)):
        if one not in rejectors.all:
            yield from table.wakes.get(one, ())
        yield from table.room_wakes.get(one, ())


def waking_events(pending: PendingPod, table: HookTable | None) -> tuple[str, ...]:
    """Return in words the events that would give a pod that sleeps another attempt."""
    patterns = [pattern for wake, _ in waits_of(pending, table) for pattern in wake.patterns]
    if pending.promised and pending.refusal is None:
        patterns.append(_DEPARTURE)
    return tuple(text for pattern in merged(patterns) for text in pattern.words())


def left_node(event: ClusterEvent) -> str:
    """Return the node that a pod has left, an empty string for other events."""
    pod = event.before
    if not isinstance(pod, PodInfo) or not _DEPARTURE.matches(event.resource, event.actions):
        return ""
    return pod.node_name


def is_left_by_victims(event: ClusterEvent) -> bool:
    """Return whether no victim is left on the node that a pod has left.

    The room that was made there may be gone, or too small: then pods nominated for it make other room.
    """
    return event.node_after is None or not any(other.being_preempted for other in event.node_after.pods)


def is_affected(pending: PendingPod, event: ClusterEvent) -> bool:
    """Return whether an event can wake a pod, whatever it waits for."""
    pod = pending.queued.pod
    if event.target:
        return event.target == pod.key
    other = event.pod
    is_own = other is not None and (other.key, other.uid) == (pod.key, pod.uid)
    if is_own and event.resource is not Resource.TARGET_POD:
        # Its own reservation, made or undone, does not wake a pod; that of a former pod of its name does.
        return False
    return event.priority is None or pod.priority <= event.priority


def urgency_of(pending: PendingPod, table: HookTable | None, event: ClusterEvent) -> Urgency:
    """Return the effect of an event on a pod that sleeps. No hint is asked about an event of any resource."""
    if not is_affected(pending, event):
        return Urgency.NONE
    if event.resource is Resource.ANY:
        return Urgency.AT_ONCE if event.label == FORCE_ACTIVATE else Urgency.AFTER_BACKOFF
    pod = pending.queued.pod
    for wake, urgency in waits_of(pending, table):
        if wake.concerns(event) and (yes := wake.is_worth_it(pod, event)):
            pending.woken_by(yes)
            return urgency
    if pending.promised and pending.refusal is None and pending.promised == left_node(event):
        return Urgency.AFTER_BACKOFF if is_left_by_victims(event) else Urgency.NONE
    return Urgency.NONE

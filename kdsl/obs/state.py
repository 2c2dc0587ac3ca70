"""Sizes that only the scheduling thread may read. A scrape has it read all of them at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kdsl.cycle.queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue at one moment.

    `sizes` are by part, `rejected` by plugin and scheduler, `incoming` by part and event.
    """

    sizes: Mapping[str, int]
    rejected: Mapping[tuple[str, str], int]
    incoming: Mapping[tuple[str, str], int]
    in_flight: int = 0
    placed_after_flush: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """The scheduling thread at one moment.

    `inbox` are waiting changes, `replaced_changes` those that a later change of the same object replaced,
    `loop_errors` the attempts, changes and messages with an unexpected error.
    """

    queue: QueueState
    nodes: int = 0
    pods: int = 0
    assumed_pods: int = 0
    bindings: int = 0
    inbox: int = 0
    replaced_changes: int = 0
    loop_errors: int = 0
    outbox: Mapping[str, int] = field(default_factory=dict)
    foreign_binds: int = 0


def queue_state(queue: SchedulingQueue, schedulers: Mapping[str, str]) -> QueueState:
    """Read the queue, on its own thread. `schedulers` are those of profiles."""
    rejected = Counter[tuple[str, str]]()
    for (plugin, profile), pods in queue.rejected().items():
        rejected[plugin, schedulers.get(profile, profile)] += pods
    return QueueState(queue.sizes, rejected, queue.incoming.copy(), queue.in_flight, queue.placed_after_flush)

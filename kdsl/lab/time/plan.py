"""The plan of a run over time, beside its workload and rules: the end, the measurements and their times, node
groups and an autoscaler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kdsl.base.times import SECOND
from kdsl.cluster.objects.node import NodeFacts


class Stop(StrEnum):
    """The event that ends a run before its latest time.

    `ended`: all pods have ended. `settled`: nothing can happen any more. A run always ends at `settled`.
    """

    ENDED = "ended"
    SETTLED = "settled"


class AfterEviction(StrEnum):
    """The time that an evicted pod runs on its next node: its whole duration, or the rest of it."""

    RESTARTS = "restarts"
    CONTINUES = "continues"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are equal except in their names: `template` has the name of the group.

    There are at least `least` and at most `most` of them, `least` from the start. A node that is added later
    is there `startup` seconds after it was ordered. `price` is that of a node for an hour, from its order to
    its removal. `priority` is read by expanders only.
    """

    name: str
    template: NodeFacts
    least: int
    most: int
    price: float = 0.0
    startup: float = 0.0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scaling:
    """An autoscaler: it looks `every` so many seconds.

    `expander` is the text of an expression; of the groups that would help the one with the highest value
    grows. A node is removed when it has been unneeded for `idle_after` seconds: without pods, or, with
    `underused`, with less than this share of each resource requested by pods that fit elsewhere.
    """

    expander: str
    every: float = 10.0
    idle_after: float = 600.0
    underused: float = 0.0


@dataclass(frozen=True, slots=True)
class TimePlan:
    """The course of a workload. Times are seconds.

    A run in which more than `most_pending` pods wait ends at once. An evicted pod comes back `return_after`
    seconds later. With `flush` pods that slept for five minutes are tried again without an event, as in a
    live scheduler; else only when nothing else can happen.
    """

    until: float | None = None
    stop: Stop = Stop.ENDED
    most_pending: int | None = None
    sample: float = 3600.0
    return_after: float = 1.0
    after_eviction: AfterEviction = AfterEviction.RESTARTS
    flush: bool = False
    groups: tuple[NodeGroup, ...] = ()
    scaling: Scaling | None = None


def nanoseconds(seconds: float) -> int:
    """Return seconds as nanoseconds, the unit of clocks."""
    return round(seconds * SECOND)

"""Workloads over time: pods arrive and end, nodes come and go. Times are seconds after the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that is created at a time.

    It ends `duration` seconds after it was bound; with None it never ends. `deleted` is the time when its
    owner deletes it, bound or not; with None nobody does.
    """

    pod: PodInfo
    at: float
    duration: float | None = None
    deleted: float | None = None


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that is added, changed or removed at a time: `facts` is None if it is removed."""

    at: float
    name: str
    facts: NodeFacts | None


@dataclass(frozen=True, slots=True)
class TimedWorkload:
    """A workload over time.

    `nodes` and `placed` (pods with a node) are there from the start, as is the `catalog` of all other
    objects. `arrivals` and `node_changes` are in order of time.
    """

    nodes: Sequence[NodeFacts]
    arrivals: Sequence[Arrival]
    placed: Sequence[PodInfo] = ()
    node_changes: Sequence[NodeChange] = ()
    catalog: Sequence[CatalogObject] = ()

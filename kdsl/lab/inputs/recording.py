"""A recorded cluster as a workload over time: the common part of snapshots and watch logs.

Objects are seen and gone at times, which are nanoseconds since the Unix epoch. A pod arrives when it was
created. It starts at its `status.startTime`, or else when it was first seen with a node. It ends when its
containers did, or else when it was first seen with a terminal phase. A pod that disappears before was
deleted by its owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.times import SECOND
from kdsl.cluster.api.kinds import CatalogObject, KubeObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo, nanoseconds
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import Manifest
from kdsl.lab.timed import Arrival, NodeChange, TimedWorkload
from kdsl.records.manifests import ObjectId, object_id

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(text: object) -> int | None:
    """Return the nanoseconds of an ISO 8601 time with a zone; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else (time - _EPOCH) // timedelta(microseconds=1) * 1000


@dataclass(slots=True)
class _Pod:
    """The life of one pod; `created` is known at once, the rest when it happens."""

    info: PodInfo
    source: Manifest
    created: int
    started: int | None = None
    ended: int | None = None
    gone: int | None = None


@dataclass(slots=True)
class Recording:
    """Takes events in order of time, and returns the workload. `start` is the first time."""

    start: int
    _pods: dict[str, _Pod] = field(default_factory=dict)
    _known: dict[tuple[str, str], str] = field(default_factory=dict)
    _nodes: dict[str, NodeFacts] = field(default_factory=dict)
    _first: dict[str, NodeFacts] = field(default_factory=dict)
    _changes: list[NodeChange] = field(default_factory=list)
    _catalog: dict[ObjectId, CatalogObject] = field(default_factory=dict)
    _sources: dict[ObjectId, Manifest] = field(default_factory=dict)

    # ---- what happens ----

    def see(self, thing: KubeObject, source: Manifest, time: int) -> None:
        """Take an object as it is at a time."""
        if isinstance(thing, Pod):
            self._see_pod(thing, source, time)
        elif isinstance(thing, Node):
            self._see_node(thing, source, time)
        else:
            self._catalog.setdefault(object_id(thing), thing)
            self._sources.setdefault(object_id(thing), source)

    def lose_pod(self, namespace: str, name: str, time: int) -> None:
        """Take note that a pod is not there any more."""
        identity = self._known.pop((namespace, name), None)
        if identity is not None and self._pods[identity].gone is None:
            self._pods[identity].gone = time

    def lose_node(self, name: str, time: int) -> None:
        """Take note that a node is not there any more."""
        if self._nodes.pop(name, None) is not None:
            self._changes.append(NodeChange(self._after(time), name, None))

    @property
    def pods(self) -> list[tuple[str, str]]:
        """The namespaces and names of the pods that are there."""
        return list(self._known)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that are there."""
        return list(self._nodes)

    def _see_pod(self, pod: Pod, source: Manifest, time: int) -> None:
        info = PodInfo.of(pod)
        place = info.namespace, info.name
        identity = info.uid or info.key
        if self._known.get(place, identity) != identity:
            # Another pod has its name: the one before must be gone.
            self.lose_pod(*place, time)
        if identity in self._pods and self._pods[identity].gone is not None:
            identity = f"{identity}@{time}"
        self._known[place] = identity
        life = self._pods.get(identity)
        if life is None:
            life = self._pods[identity] = _Pod(info, source, min(info.created_at or time, time))
        if life.started is None and info.node_name:
            life.started = max(info.start_time or time, life.created)
        if life.ended is None and info.is_finished:
            life.ended = _finished(source) or time

    def _see_node(self, node: Node, source: Manifest, time: int) -> None:
        facts, name = NodeFacts.of(node), node.metadata.name
        if self._nodes.get(name) == facts:
            return
        created = nanoseconds(node.metadata.creation_timestamp) or time
        if name not in self._nodes:
            time = min(created, time)
        self._nodes[name] = facts
        self._sources.setdefault((Node.KIND, name), source)
        if time <= self.start:
            self._first[name] = facts
        else:
            self._changes.append(NodeChange(self._after(time), name, facts))

    def _after(self, time: int) -> float:
        return max(time - self.start, 0) / SECOND

    # ---- the workload ----

    def workload(self, found: list[Diagnostic]) -> tuple[TimedWorkload, dict[ObjectId, Manifest]]:
        """Return the workload with the manifests of its objects.

        `found` gets a warning for each part that is left out.
        """
        manifests = dict(self._sources)
        placed: list[PodInfo] = []
        arrivals: list[Arrival] = []
        names: Counter[str] = Counter()
        over = 0
        for life in self._pods.values():
            if life.ended is not None and life.ended <= self.start:
                over += 1
                continue
            names[life.info.key] += 1
            number = names[life.info.key]
            if (
                life.started is not None
                and life.started <= self.start
                and life.ended is None
                and life.gone is None
            ):
                placed.append(life.info)
                manifests[Pod.KIND, life.info.key] = life.source
                continue
            pod = _unplaced(life.info, number)
            manifests[Pod.KIND, pod.key] = _without_status(life.source, pod)
            arrivals.append(self._arrival(life, pod))
        if over:
            pods = "1 pod had" if over == 1 else f"{over:,} pods had"
            title = f"{pods} ended before the recording starts: left out"
            found.append(Diagnostic(InputCode.INCOMPLETE, title, severity=Severity.WARNING))
        arrivals.sort(key=lambda arrival: (arrival.at, arrival.pod.created_at, arrival.pod.key))
        self._changes.sort(key=lambda change: change.at)
        catalog = tuple(self._catalog.values())
        workload = TimedWorkload(list(self._first.values()), arrivals, placed, self._changes, catalog)
        return workload, manifests

    def _arrival(self, life: _Pod, pod: PodInfo) -> Arrival:
        """Return the arrival of a pod. One that ran at the start arrives then, for the rest of its time."""
        at = self._after(life.created)
        if life.ended is not None:
            started = max(life.started if life.started is not None else life.created, self.start)
            return Arrival(pod, at, max(life.ended - started, 0) / SECOND)
        return Arrival(pod, at, deleted=None if life.gone is None else max(self._after(life.gone), at))


def _unplaced(pod: PodInfo, number: int) -> PodInfo:
    """Return a pod as it was created. The second one of a name, as of a StatefulSet, gets another."""
    name = pod.name if number == 1 else f"{pod.name[:240]}-again-{number}"
    return pod.with_fields(
        name=name, node_name="", nominated_node_name="", start_time=0, phase="", deletion_timestamp=0,
        being_preempted=False,
    )  # fmt: skip


def _without_status(source: Manifest, pod: PodInfo) -> Manifest:
    spec = {key: value for key, value in source["spec"].items() if key != "nodeName"}
    metadata = {key: value for key, value in source["metadata"].items() if key != "deletionTimestamp"}
    return {**source, "metadata": {**metadata, "name": pod.name}, "spec": spec, "status": {}}


def _finished(source: Manifest) -> int | None:
    """Return the time when the last container ended."""
    return max(_ends(source), default=None)


def _ends(source: Any) -> Iterator[int]:
    statuses = (source.get("status") or {}).get("containerStatuses") or ()
    for status in statuses:
        terminated = (status.get("state") or {}).get("terminated") or {}
        time = time_of(terminated.get("finishedAt"))
        if time is not None:
            yield time

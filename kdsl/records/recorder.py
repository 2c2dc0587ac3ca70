"""Writes a record while an engine runs: it observes the engine and its cluster, and changes neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kdsl.base.events import Action, Resource
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.ports import AttemptState
from kdsl.records.lines import (
    Change,
    Cycle,
    End,
    EngineLine,
    Line,
    Placed,
    Put,
    Removed,
    SettledLine,
    Start,
    write_line,
)
from kdsl.records.manifests import ObjectId, catalog_manifest, changed_annotations, manifest_id, pod_manifest
from kdsl.report.decisions import API_VERSION, decision_document


class DecisionRecorder:
    """A `Tracer` of one engine and an observer of its cluster: passes each line to `write`, in order."""

    def __init__(
        self,
        write: Callable[[str], object],
        manifests: Mapping[ObjectId, Manifest],
        options: EngineOptions,
        find: Callable[[str], PodInfo | None],
    ) -> None:
        """`manifests` are the present objects as written; an unchanged one stays the same value.

        `find` returns the placed pod `namespace/name` of the cluster.
        """
        self._write = write
        self._manifests = manifests
        self._find = find
        self._options = options
        self._changes: list[Change] = []
        self._begun: tuple[list[Change], Manifest, EngineLine] | None = None
        self._cycles = self._dropped = 0
        self._skips = False
        # The manifests of pods in the record: a placement takes all but node and annotations from them.
        self._written: dict[str, Manifest] = {}

    def start(self, objects: Iterable[ObjectId]) -> None:
        """Write the cluster, which contains these objects."""
        found: list[Manifest] = []
        for each in objects:
            found.append(self._manifests[each])
            if each[0] == Pod.KIND:
                self._written[each[1]] = found[-1]
        self._emit(Start(API_VERSION, self._options.rules, found))

    def notice(self, event: ClusterEvent) -> None:
        """Record a change of the cluster."""
        pod = event.pod
        if pod is not None:
            if event.actions == Action.DELETE:
                self._written.pop(pod.key, None)
                self._changes.append(Removed(Pod.KIND, pod.key))
            elif event.resource is Resource.ASSIGNED_POD:
                self._changes.append(self._placement(pod))
        elif isinstance(event.after, NodeFacts):
            self._changes.append(Put(self._manifests[Node.KIND, event.after.name]))
        elif isinstance(event.before, NodeFacts):
            self._changes.append(Removed(Node.KIND, event.before.name))
        elif isinstance(event.after, CatalogObject):
            self._changes.append(Put(catalog_manifest(event.after)))
        elif isinstance(event.before, CatalogObject):
            self._changes.append(Removed(event.before.KIND, key_of(event.before)))

    def _placement(self, pod: PodInfo) -> Change:
        """Return the change of a placed pod, with its manifest if the record does not have it."""
        source = self._source(pod)
        if self._written.get(pod.key) is source:
            return Placed(pod.key, pod.node_name)
        self._written[pod.key] = source
        return Put(pod_manifest(source, pod.node_name, annotations=changed_annotations(source, pod)))

    def _take_changes(self) -> list[Change]:
        """Return the changes since the last line, each pod with its present annotations.

        A pod gets the annotations of its cards after it is placed, without an event.
        """
        changes, self._changes = self._changes, []
        return list(map(self._annotated, changes))

    def _annotated(self, change: Change) -> Change:
        if isinstance(change, Placed):
            key, node = change.pod, change.node
        elif isinstance(change, Put) and change.object.get("kind") == Pod.KIND:
            key, node = manifest_id(change.object)[1], change.object["spec"]["nodeName"]
        else:
            return change
        pod = self._find(key)
        if pod is None or pod.node_name != node:
            return change
        source = self._written[key]
        annotations = changed_annotations(source, pod)
        if isinstance(change, Placed):
            return Placed(key, node, annotations)
        return Put(pod_manifest(source, node, annotations=annotations))

    def begin(
        self, pod: PodInfo, state: AttemptState, options: EngineOptions | None = None, time: int = 0
    ) -> None:
        """Store the inputs of the attempt that begins; `options` are new ones of the engine."""
        self._undo_begin()
        self._options = options = options or self._options
        engine = EngineLine(
            start_index=state.start,
            attempts=state.number,
            percentage=options.percentage,
            tie_break=options.tie_break.value,
            seed=options.seed,
            time=time,
            promised=[self._pending(other, node) for other, node in state.promised if other.key != pod.key],
        )
        manifest = self._pending(pod, state.nominated_node)
        self._begun = self._take_changes(), manifest, engine

    def skip(self, pod: PodInfo) -> None:
        """Begin an attempt that gets no line: the next line has its number and its changes."""
        self._undo_begin()
        self._skips = True
        # The pod's manifest is not written now: a placement writes it.
        self._written.pop(pod.key, None)

    def _undo_begin(self) -> None:
        """Keep the changes before an attempt that ended without a decision."""
        if self._begun is not None:
            self._changes = [*self._begun[0], *self._changes]
            self._begun = None

    def record(self, decision: Decision) -> None:
        """Write a decision, with the inputs stored when its attempt began."""
        # The pod may be gone when the changes are written.
        self._changes = list(map(self._annotated, self._changes))
        if self._skips:
            self._skips = False
            self._dropped, self._cycles = self._dropped + 1, self._cycles + 1
            return
        document = decision_document(decision)
        if self._begun is None:
            self._emit(SettledLine(API_VERSION, self._take_changes(), document))
            return
        changes, pod, engine = self._begun
        self._begun = None
        self._emit(Cycle(API_VERSION, self._cycles, changes, pod, engine, document, self._dropped))
        self._cycles, self._dropped = self._cycles + 1, 0

    def finish(self) -> None:
        """Write the last line."""
        self._emit(End(API_VERSION, self._take_changes(), self._cycles))

    def _pending(self, pod: PodInfo, nominated: str) -> Manifest:
        source = self._written[pod.key] = self._source(pod)
        return pod_manifest(source, pod.node_name, nominated, changed_annotations(source, pod))

    def _source(self, pod: PodInfo) -> Manifest:
        return self._manifests[Pod.KIND, pod.key]

    def _emit(self, line: Line) -> None:
        self._write(write_line(line))

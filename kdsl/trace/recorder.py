"""Writes a trace while an engine runs: it observes the engine and its cluster, and changes neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kdsl.base.events import Action, Resource
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import EngineOptions
from kdsl.cycle.ports import AttemptState
from kdsl.report.decisions import API_VERSION, decision_document
from kdsl.trace.lines import (
    Change,
    Cycle,
    End,
    EngineLine,
    Line,
    Placed,
    Put,
    Removed,
    Settled,
    Start,
    write_line,
)
from kdsl.trace.manifests import ObjectId, catalog_manifest, changed_annotations, pod_manifest


class Recorder:
    """A `Tracer` of one engine and an observer of its cluster: passes each line to `write`, in order."""

    def __init__(
        self,
        write: Callable[[str], object],
        manifests: Mapping[ObjectId, Manifest],
        options: EngineOptions,
        find: Callable[[str], PodInfo | None],
    ) -> None:
        """`find` returns the placed pod `namespace/name` of the cluster."""
        self._write = write
        self._manifests = manifests
        self._find = find
        self._options = options
        self._changes: list[Change] = []
        self._begun: tuple[list[Change], Manifest, EngineLine] | None = None
        self._cycles = 0

    def start(self, objects: Iterable[ObjectId]) -> None:
        """Write the cluster, which contains these objects."""
        found = [self._manifests[each] for each in objects]
        self._emit(Start(API_VERSION, self._options.rules, found))

    def notice(self, event: ClusterEvent) -> None:
        """Record a change of the cluster, whose nodes must not change meanwhile."""
        pod = event.pod
        if pod is not None:
            if event.actions == Action.DELETE:
                self._changes.append(Removed(Pod.KIND, pod.key))
            elif event.resource is Resource.ASSIGNED_POD:
                self._changes.append(Placed(pod.key, pod.node_name))
        elif isinstance(event.after, CatalogObject):
            self._changes.append(Put(catalog_manifest(event.after)))
        elif isinstance(event.before, CatalogObject):
            self._changes.append(Removed(event.before.KIND, key_of(event.before)))

    def _take_changes(self) -> list[Change]:
        """Return the changes since the last line, each pod with its present annotations.

        A pod gets the annotations of its cards after it is placed, without an event.
        """
        changes, self._changes = self._changes, []
        return [self._annotated(each) if isinstance(each, Placed) else each for each in changes]

    def _annotated(self, change: Placed) -> Placed:
        pod = self._find(change.pod)
        if pod is None or pod.node_name != change.node:
            return change
        return Placed(change.pod, change.node, changed_annotations(self._source(pod), pod))

    def begin(self, pod: PodInfo, state: AttemptState) -> None:
        """Store the inputs of the attempt that begins."""
        options = self._options
        engine = EngineLine(
            start_index=state.start,
            attempts=state.number,
            percentage=options.percentage,
            tie_break=options.tie_break.value,
            seed=options.seed,
            promised=[self._pending(other, node) for other, node in state.promised if other.key != pod.key],
        )
        manifest = self._pending(pod, state.nominated_node)
        self._begun = self._take_changes(), manifest, engine

    def record(self, decision: Decision) -> None:
        """Write a decision, with the inputs stored when its attempt began."""
        document = decision_document(decision)
        if self._begun is None:
            self._emit(Settled(API_VERSION, self._take_changes(), document))
            return
        changes, pod, engine = self._begun
        self._begun = None
        self._emit(Cycle(API_VERSION, self._cycles, changes, pod, engine, document))
        self._cycles += 1

    def finish(self) -> None:
        """Write the last line."""
        self._emit(End(API_VERSION, self._take_changes(), self._cycles))

    def _pending(self, pod: PodInfo, nominated: str) -> Manifest:
        source = self._source(pod)
        return pod_manifest(source, pod.node_name, nominated, changed_annotations(source, pod))

    def _source(self, pod: PodInfo) -> Manifest:
        return self._manifests[Pod.KIND, pod.key]

    def _emit(self, line: Line) -> None:
        self._write(write_line(line))

"""Runs a mapping: the tables of a trace as a workload over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.frozen_map import freeze, share
from kdsl.base.times import SECOND, to_microseconds
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import Manifest
from kdsl.lab.inputs.cells import RowError, shown
from kdsl.lab.inputs.fields import Fields, PodKinds, labels_of, manifest_of_node, texts_of
from kdsl.lab.inputs.ledger import Ledger
from kdsl.lab.inputs.mapping import Mapping, ObjectTable
from kdsl.lab.inputs.objects import PodKind, ReadPods, node_facts
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.rows import records
from kdsl.lab.timed import Arrival, NodeChange, TimedWorkload
from kdsl.records.manifests import ObjectId

MAX_OBJECTS: Final = 20_000_000
"""The largest number of pods, and of nodes."""

_CHANGES: Final = ("add", "update", "remove")


def read_mapped(mapping: Mapping, *, keeps_manifests: bool = False) -> Reading:
    """Read the tables of a mapping. Times count from the earliest arrival or change of a node."""
    run = _Run(keeps_manifests)
    for objects in mapping.nodes:
        run.read(objects, "nodes", run.node)
    for objects in mapping.pods:
        run.read(objects, "pods", partial(run.pod, PodKinds(objects, run.kinds)))
    return run.result()


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod; `info` lacks its name. Times are nanoseconds in the time of the table, None for none."""

    name: str
    kind: PodKind
    info: PodInfo
    at: int | None
    duration: float | None
    deleted: int | None


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a node; `facts` is None if it is removed. `at` is None for a node that is always there."""

    at: int | None
    name: str
    facts: NodeFacts | None
    is_addition: bool = False


@dataclass(slots=True)
class _Run:
    keeps_manifests: bool
    found: list[Diagnostic] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    manifests: dict[ObjectId, Manifest] = field(default_factory=dict)
    kinds: ReadPods = field(default_factory=ReadPods)
    pods: list[_Pod] = field(default_factory=list)
    pod_names: set[tuple[str, str]] = field(default_factory=set)
    changes: list[_Change] = field(default_factory=list)
    lasting: set[str] = field(default_factory=set)

    def read(self, objects: ObjectTable, what: str, take: Callable[[Fields], int]) -> None:
        """Read a table with the function that makes objects of a record."""
        file = "the mapping" if objects.table is None else str(objects.table.path)
        ledger = Ledger(file, what, objects.max_errors)
        self.ledgers.append(ledger)
        for line, values in records(objects, ledger, self.ledgers, self.found):
            try:
                ledger.objects += take(Fields(objects, values))
            except RowError as error:
                ledger.refuse(line, error)
            if ledger.objects > MAX_OBJECTS:
                title = f"this table stands for more than {MAX_OBJECTS:,} {what}"
                self.found.append(Diagnostic(InputCode.TOO_LARGE, title, where=f"{file}:{line}"))
                break
            if ledger.is_beyond:
                break
        self.found.extend(ledger.diagnostics())

    # ---- nodes ----

    def node(self, fields: Fields) -> int:
        """Take a node, or a change of one."""
        names = fields.names()
        change, at = fields.get("change"), fields.time("at")
        if change not in (None, *_CHANGES):
            title = f"`{shown(change)}` is not `add`, `update` or `remove`"
            raise RowError("change", title, "the text is not a change")
        if at is None:
            for name in names:
                if name in self.lasting:
                    raise RowError("name", f"a second node is named `{name}`", "a second node has the name")
            self.lasting.update(names)
        if change == "remove":
            self.changes += [_Change(at, name, None) for name in names]
            return 0
        manifest = manifest_of_node(fields)
        facts = node_facts(manifest)
        for name in names:
            if self.keeps_manifests:
                key = Node.KIND, name
                self.manifests[key] = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
            self.changes.append(_Change(at, name, replace(facts, name=name), change != "update"))
        return len(names)

    # ---- pods ----

    def pod(self, kinds: PodKinds, fields: Fields) -> int:
        """Take the pods that a record stands for."""
        kind, info, of_cards = kinds.of(fields)
        labels = {**of_cards, **dict(labels_of(fields, "labels"))}
        annotations = dict(texts_of(fields.map("annotations")))
        if labels or annotations:
            info = info.with_fields(labels=share(labels), annotations=freeze(annotations))
        at, duration, deleted = fields.time("arrival"), fields.seconds("duration"), fields.time("deleted")
        if at is None and "arrival" in fields.objects.fields:
            raise RowError("arrival", "there is no arrival")
        names = fields.names()
        for name in names:
            if (kind.namespace, name) in self.pod_names:
                reason = "a second pod has the name"
                raise RowError("name", f"a second pod is named `{kind.namespace}/{name}`", reason)
        for name in names:
            self.pod_names.add((kind.namespace, name))
            self.pods.append(_Pod(name, kind, info, at, duration, deleted))
        return len(names)

    # ---- the workload ----

    def result(self) -> Reading:
        times = [pod.at for pod in self.pods if pod.at is not None]
        times += [change.at for change in self.changes if change.at is not None]
        start = min(times, default=0)
        arrivals = [self._arrival(number, pod, start) for number, pod in enumerate(self.pods)]
        arrivals.sort(key=lambda arrival: arrival.at)
        nodes, changes = self._nodes(start)
        workload = TimedWorkload(nodes, arrivals, node_changes=changes)
        has_times = any(pod.at is not None for pod in self.pods)
        return Reading(workload, tuple(self.found), self.manifests, tuple(self.ledgers), has_times)

    def _arrival(self, number: int, pod: _Pod, start: int) -> Arrival:
        """Return the arrival of a pod; one without a time arrives so many seconds after the start."""
        after = number * SECOND if pod.at is None else pod.at - start
        namespace = pod.kind.namespace
        info = pod.info.with_fields(
            name=pod.name, uid=f"{namespace}/{pod.name}", created_at=after // 1000 * 1000
        )
        if self.keeps_manifests:
            manifest = pod.kind.manifest(pod.name, info.labels, info.annotations)
            manifest["metadata"]["creationTimestamp"] = to_microseconds(after)
            self.manifests[Pod.KIND, info.key] = manifest
        deleted = None if pod.deleted is None else max(pod.deleted - start, after) / SECOND
        return Arrival(info, after / SECOND, pod.duration, deleted)

    def _nodes(self, start: int) -> tuple[list[NodeFacts], list[NodeChange]]:
        """Return the nodes at the start, and the changes after it."""
        present: dict[str, NodeFacts] = {}
        first: list[NodeFacts] | None = None
        later: list[NodeChange] = []
        unknown: list[str] = []
        for after, change in _in_order(self.changes, start):
            if after > 0 and first is None:
                first = list(present.values())
            name, facts = change.name, change.facts
            if name not in present and not change.is_addition:
                unknown.append(f"`{name}` after {after / SECOND:g} seconds")
                continue
            if present.get(name) == facts:
                continue
            if after > 0:
                later.append(NodeChange(after / SECOND, name, facts))
            if facts is None:
                del present[name]
            else:
                present[name] = facts
        if unknown:
            changes = "1 change is" if len(unknown) == 1 else f"{len(unknown):,} changes are"
            title = f"{changes} left out: the node is not there"
            help_ = (f"the first one: {unknown[0]}",)
            self.found.append(
                Diagnostic(InputCode.TRACE, title, where="nodes", help=help_, severity=Severity.WARNING)
            )
        return list(present.values()) if first is None else first, later


def _in_order(changes: Sequence[_Change], start: int) -> Iterator[tuple[int, _Change]]:
    """Yield changes in order of time, with the nanoseconds after the start."""
    timed = [(0 if change.at is None else change.at - start, change) for change in changes]
    yield from sorted(timed, key=lambda each: each[0])

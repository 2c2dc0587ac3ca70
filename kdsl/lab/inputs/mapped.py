"""Runs a mapping: the tables of a trace as a workload over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.frozen_map import freeze, share
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.problems import InputCode
from kdsl.cluster.read.reader import Manifest
from kdsl.eval.values import SECOND, Duration, Timestamp, Value
from kdsl.eval.views import attribute_of
from kdsl.lab.inputs.cells import RowError, shown
from kdsl.lab.inputs.ledger import Ledger
from kdsl.lab.inputs.mapping import Mapping, Objects
from kdsl.lab.inputs.mapping_file import GROUP, ROW
from kdsl.lab.inputs.objects import (
    MAX_CARDS,
    MAX_KINDS,
    MOST_PODS,
    Kinds,
    PodKind,
    Strings,
    amount,
    card_label,
    card_parts,
    card_requests,
    created,
    label_value,
    models_of,
    node_facts,
    node_manifest,
    object_name,
    whole,
)
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.rows import records
from kdsl.lab.timed import Arrival, NodeChange, TimedWorkload
from kdsl.sim.openb import GPU_MILLI, MODEL_LABEL
from kdsl.trace.manifests import ObjectId

MAX_REPEAT: Final = 100_000
"""The largest number of objects that a row stands for."""
MAX_OBJECTS: Final = 20_000_000
"""The largest number of pods, and of nodes."""

_LONGEST: Final = 2**53
_CHANGES: Final = ("add", "update", "remove")


def read_mapped(mapping: Mapping, *, keeps_manifests: bool = False) -> Reading:
    """Read the tables of a mapping. Times count from the earliest arrival or change of a node."""
    run = _Run(keeps_manifests)
    for objects in mapping.nodes:
        run.read(objects, "nodes", run.node)
    for objects in mapping.pods:
        run.read(objects, "pods", partial(run.pod, _PodKinds(objects, run.kinds)))
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
class _Fields:
    """The values of the fields of one record."""

    objects: Objects
    values: Sequence[Value]

    def get(self, key: str) -> Value:
        formula = self.objects.fields.get(key)
        return None if formula is None else formula.value(self.values)

    def needed(self, key: str) -> Value:
        value = self.get(key)
        if value is None:
            raise RowError(key, f"there is no {key}")
        return value

    def map(self, key: str) -> list[tuple[str, str, Value]]:
        """Return the entries of a field such as `labels` that have a value, each with its place."""
        found = []
        for name, formula in self.objects.maps.get(key, {}).items():
            value = formula.value(self.values)
            if value is not None:
                found.append((name, formula.place, value))
        return found

    def time(self, key: str) -> int | None:
        """Return a time in nanoseconds."""
        value = self.get(key)
        return value.ns if isinstance(value, Timestamp) else _nanoseconds(value, key)

    def seconds(self, key: str) -> float | None:
        value = self.get(key)
        nanoseconds = value.ns if isinstance(value, Duration) else _nanoseconds(value, key)
        if nanoseconds is None:
            return None
        if nanoseconds < 0:
            title = f"the {key} is {nanoseconds / SECOND:g} seconds"
            raise RowError(key, title, f"the {key} is negative")
        return nanoseconds / SECOND

    def repeats(self) -> int:
        value = 1 if "repeat" not in self.objects.fields else self.needed("repeat")
        if not 0 <= value <= MAX_REPEAT:
            title = f"{value} is not a number of objects from 0 to {MAX_REPEAT:,}"
            raise RowError("repeat", title, f"the number is not from 0 to {MAX_REPEAT:,}")
        return int(value)

    def names(self) -> list[str]:
        """Return the names of the objects that the record stands for."""
        value = self.needed("name")
        if "repeat" not in self.objects.fields:
            return [object_name(value)]
        return [object_name(f"{value}-{number}") for number in range(self.repeats())]


def _nanoseconds(value: Value, place: str) -> int | None:
    if value is None:
        return None
    if not abs(value) < _LONGEST:
        raise RowError(place, f"{value} seconds are out of range", "the number of seconds is out of range")
    return value * SECOND if isinstance(value, int) else round(value * SECOND)


@dataclass(slots=True)
class _Run:
    keeps_manifests: bool
    found: list[Diagnostic] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    manifests: dict[ObjectId, Manifest] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=Kinds)
    pods: list[_Pod] = field(default_factory=list)
    pod_names: set[tuple[str, str]] = field(default_factory=set)
    changes: list[_Change] = field(default_factory=list)
    lasting: set[str] = field(default_factory=set)

    def read(self, objects: Objects, what: str, take: Callable[[_Fields], int]) -> None:
        """Read a table with the function that makes objects of a record."""
        file = "the mapping" if objects.table is None else str(objects.table.path)
        ledger = Ledger(file, what, objects.max_errors)
        self.ledgers.append(ledger)
        for line, values in records(objects, ledger, self.found):
            try:
                ledger.objects += take(_Fields(objects, values))
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

    def node(self, fields: _Fields) -> int:
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
        manifest = _node_manifest(fields)
        facts = node_facts(manifest)
        for name in names:
            if self.keeps_manifests:
                key = Node.KIND, name
                self.manifests[key] = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
            self.changes.append(_Change(at, name, replace(facts, name=name), change != "update"))
        return len(names)

    # ---- pods ----

    def pod(self, kinds: _PodKinds, fields: _Fields) -> int:
        """Take the pods that a record stands for."""
        kind, info, of_cards = kinds.of(fields)
        labels = {**of_cards, **dict(_labels(fields, "labels"))}
        annotations = dict(_texts(fields.map("annotations")))
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
            manifest["metadata"]["creationTimestamp"] = created(after)
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


class _PodKinds:
    """The kinds of the pods of one table: what their fields give for equal values of the columns is kept."""

    def __init__(self, objects: Objects, kinds: Kinds) -> None:
        self._kinds = kinds
        self._known: dict[tuple[Value, ...], tuple[PodKind, PodInfo, Strings]] = {}
        formulas = [objects.fields[key] for key in _KIND_FIELDS if key in objects.fields]
        formulas += [each for key in _KIND_MAPS for each in objects.maps.get(key, {}).values()]
        scope = [GROUP] if objects.grouping is not None else [ROW, *(join.name for join in objects.joins)]
        read = {
            (scope.index(name), attribute_of(each))
            for one in formulas
            for name in one.reads
            for each in one.reads[name]
        }
        self._read = sorted(read)

    def of(self, fields: _Fields) -> tuple[PodKind, PodInfo, Strings]:
        """Return the kind of a pod, the pod without name and labels, and the labels from its cards."""
        values = fields.values
        key = tuple([getattr(values[place], name) for place, name in self._read])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_KINDS:
                self._known.clear()
            kind, labels = _pod_kind(fields)
            known = self._known[key] = kind, self._kinds.pod(kind), labels
        return known


_KIND_FIELDS: Final = ("namespace", "scheduler", "priority", "cpu", "memory", "cards", "models")
_KIND_MAPS: Final = ("nodeSelector", "resources")


def _pod_kind(fields: _Fields) -> tuple[PodKind, Strings]:
    requests: list[tuple[str, str]] = []
    if (cpu := fields.get("cpu")) is not None:
        requests.append(("cpu", amount(cpu, "cpu", milli=True)))
    if (memory := fields.get("memory")) is not None:
        requests.append(("memory", amount(memory, "memory")))
    requests += [(name, whole(value, place)) for name, place, value in fields.map("resources")]
    cards, models = fields.get("cards"), fields.get("models")
    parts = 0 if cards is None else card_parts(cards)
    kind = PodKind(
        namespace=_text(fields, "namespace") or "default",
        labels=tuple(fields.objects.maps.get("labels", ())),
        annotations=tuple(fields.objects.maps.get("annotations", ())),
        scheduler=_text(fields, "scheduler"),
        priority=fields.get("priority"),
        selector=_labels(fields, "nodeSelector"),
        requests=(*requests, *card_requests(parts)),
        models=() if models is None else models_of(models),
    )
    return kind, card_label(parts)


def _node_manifest(fields: _Fields) -> Manifest:
    allocatable = {
        "cpu": amount(fields.needed("cpu"), "cpu", milli=True),
        "memory": amount(fields.needed("memory"), "memory"),
    }
    most = fields.get("pods")
    allocatable["pods"] = str(MOST_PODS) if most is None else whole(most, "pods")
    allocatable |= {name: whole(value, place) for name, place, value in fields.map("resources")}
    labels = dict(_labels(fields, "labels"))
    cards, model = fields.get("cards"), _text(fields, "model")
    if cards is not None:
        if not 0 <= cards <= MAX_CARDS or cards != int(cards):
            title = f"{cards} is not a number of cards from 0 to {MAX_CARDS}"
            raise RowError("cards", title, "no number of cards")
        allocatable[GPU_MILLI] = str(int(cards) * 1000)
    if model:
        labels[MODEL_LABEL] = label_value(model, "model")
    return node_manifest("template", labels, dict(_texts(fields.map("annotations"))), allocatable)


def _text(fields: _Fields, key: str) -> str:
    value = fields.get(key)
    return "" if value is None else object_name(value, key) if key == "namespace" else str(value)


def _labels(fields: _Fields, key: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, label_value(value, place)) for name, place, value in fields.map(key))


def _texts(entries: Sequence[tuple[str, str, Value]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, ("true" if value else "false") if isinstance(value, bool) else str(value))
        for name, _, value in entries
    )

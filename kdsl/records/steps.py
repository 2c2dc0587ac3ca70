"""A recorded run as typed steps: the changes of the cluster, and each attempt with all that it depended on.

A record is untrusted: every line is checked, and the first mistake ends the reading with a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.api.kinds import CatalogObject, KubeObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import Manifest, read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Outcome, TieBreak
from kdsl.cycle.engine_options import EngineOptions
from kdsl.records.decisions import recorded_decision
from kdsl.records.lines import (
    Change,
    Cycle,
    End,
    EngineLine,
    Line,
    LineError,
    Placed,
    Put,
    Removed,
    SettledLine,
    Start,
    lines_of,
)
from kdsl.records.manifests import ObjectId, object_id, pod_manifest

MAX_PERCENTAGE: Final = 100
MAX_INT: Final = 2**63 - 1
_WITH_NODE: Final = (Outcome.PLACED, Outcome.WAITING)


@dataclass(frozen=True, slots=True)
class PodPlaced:
    """The pod is on its node from now on."""

    pod: PodInfo


@dataclass(frozen=True, slots=True)
class PodGone:
    """The pod is on no node any more."""

    pod: PodInfo


@dataclass(frozen=True, slots=True)
class NodePut:
    """A node was added or changed."""

    facts: NodeFacts


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was removed."""

    name: str


@dataclass(frozen=True, slots=True)
class ObjectPut:
    """Another object was added or changed."""

    object: CatalogObject


@dataclass(frozen=True, slots=True)
class ObjectGone:
    """Another object was removed; `key` is its `key_of`."""

    kind: str
    key: str


StepChange = PodPlaced | PodGone | NodePut | NodeGone | ObjectPut | ObjectGone


@dataclass(frozen=True, slots=True)
class Attempt:
    """A recorded attempt: the pod as it was tried, the engine's state, and the decision.

    `promised` are the other nominated pods with their nodes, `time` the clock's nanoseconds, `dropped` the
    number of decisions before it that are not recorded. `annotations` are those that the pod got on its
    node, None where they did not change.
    """

    number: int
    pod: PodInfo
    options: EngineOptions
    promised: tuple[PodInfo, ...]
    time: int
    decision: Decision
    dropped: int = 0
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a record: changes since the line before, then an attempt or the result of a held pod."""

    changes: tuple[StepChange, ...]
    attempt: Attempt | None = None
    settled: Decision | None = None


def apply(change: StepChange, cluster: ClusterCache) -> None:
    """Apply a change to a cluster."""
    match change:
        case PodPlaced(pod):
            cluster.add_pod(pod)
        case PodGone(pod):
            cluster.remove_pod(pod.key)
        case NodePut(facts):
            cluster.add_node(facts)
        case NodeGone(name):
            cluster.remove_node(name)
        case ObjectPut(thing):
            cluster.put(thing)
        case ObjectGone(kind, key):
            cluster.remove(kind, key)


@dataclass(slots=True)
class Reading:
    """One pass over a record. `manifests` are the objects as written, up to the present step.

    `rules` is the digest of the recorded rules, `is_whole` is true after the last line of a whole record.
    `dropped_last` counts the decisions behind the last recorded one.
    """

    file: InputFile
    manifests: dict[ObjectId, Manifest] = field(default_factory=dict)
    rules: str = ""
    is_whole: bool = False
    dropped_last: int = 0
    _pods: dict[str, PodInfo] = field(default_factory=dict)
    _present: set[ObjectId] = field(default_factory=set)
    _cycles: int = 0
    _line: int = 0

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order; raise InvalidInputError at the first line with mistakes."""
        last: Step | None = None
        for line in self._lines():
            step = self._step(line)
            if last is not None:
                yield _with_annotations(last, step)
            last = step
        if last is None:
            raise self._error("the record is empty")
        yield last

    def _lines(self) -> Iterator[Line]:
        try:
            for number, line in lines_of(self.file):
                self._line = number
                yield line
        except LineError as error:
            self._line = error.line
            help = ("without this line the rest can be replayed",) if error.is_cut else ()
            raise self._error(f"this is not a line of a record: {error.reason}", *help) from error

    def _step(self, line: Line) -> Step:
        if self.is_whole:
            raise self._error("nothing may follow the last line (`TraceEnd`)")
        if isinstance(line, Start) != (self._line == 1):
            wanted = "a record begins with the cluster (`TraceStart`)"
            raise self._error(wanted if self._line == 1 else f"{wanted}, which is only its first line")
        if isinstance(line, Start):
            self.rules = line.rules
            found = self._read(line.objects)
            for thing, _ in found:
                self._check_placed(thing)
            return Step(tuple(self._put(each) for each in found))
        if isinstance(line, Cycle):
            self._count(line)
        changes = tuple(self._change(each) for each in line.changes)
        match line:
            case Cycle():
                return Step(changes, attempt=self._attempt(line))
            case SettledLine():
                decision = self._decision(line.decision)
                if not decision.node and decision.outcome in _WITH_NODE:
                    raise self._no_node(decision)
                return Step(changes, settled=decision)
            case End():
                self.dropped_last = line.cycles - self._cycles
                if self.dropped_last < 0:
                    raise self._error(f"the run had {line.cycles} decisions, the record has {self._cycles}")
                self.is_whole = True
        return Step(changes)

    # ---- changes -----------------------------------------------------------------------------------------

    def _change(self, change: Change) -> StepChange:
        match change:
            case Put():
                (found,) = self._read([change.object])
                self._check_placed(found[0])
                return self._put(found)
            case Removed():
                return self._removed(change)
            case Placed():
                return self._placed(change)

    def _check_placed(self, thing: KubeObject) -> None:
        if isinstance(thing, Pod) and not thing.spec.node_name:
            raise self._error(
                f"pod `{object_id(thing)[1]}` has no node: a pod without a node is no part of the cluster",
                "name its node in `spec.nodeName`, or leave the pod out until its attempt",
            )

    def _put(self, found: tuple[KubeObject, Manifest]) -> StepChange:
        thing, manifest = found
        key = object_id(thing)
        self.manifests[key] = manifest
        self._present.add(key)
        if isinstance(thing, Node):
            return NodePut(NodeFacts.of(thing))
        if isinstance(thing, Pod):
            self._pods[key[1]] = pod = PodInfo.of(thing)
            return PodPlaced(pod)
        return ObjectPut(thing)

    def _removed(self, change: Removed) -> StepChange:
        key = change.object_kind, change.key
        if key not in self._present:
            raise self._error(f"{change.object_kind} `{change.key}` is removed, and was not there")
        self._present.remove(key)
        if change.object_kind == Pod.KIND:
            return PodGone(self._pods[change.key])
        if change.object_kind == Node.KIND:
            return NodeGone(change.key)
        return ObjectGone(*key)

    def _placed(self, change: Placed) -> StepChange:
        if not change.node:
            raise self._error(f"pod `{change.pod}` is placed on no node")
        source = self.manifests.get((Pod.KIND, change.pod))
        if source is None:
            raise self._error(f"pod `{change.pod}` is placed before it was tried")
        pod = self._pod(pod_manifest(source, change.node, annotations=change.annotations))
        self._present.add((Pod.KIND, change.pod))
        self._pods[change.pod] = pod
        return PodPlaced(pod)

    # ---- attempts ----------------------------------------------------------------------------------------

    def _count(self, line: Cycle) -> None:
        if line.dropped < 0 or line.cycle != self._cycles + line.dropped:
            title = f"this is decision {line.cycle}, the next one is {self._cycles}"
            raise self._error(title, "the lines are in another order, or some are missing")
        self._cycles = line.cycle + 1

    def _attempt(self, line: Cycle) -> Attempt:
        pod, decision = self._pod(line.pod), self._decision(line.decision)
        if decision.pod != pod.key:
            raise self._error(f"pod `{pod.key}` was tried, and the decision is about `{decision.pod}`")
        if pod.node_name and decision.outcome is not Outcome.SKIPPED:
            raise self._error(
                f"pod `{pod.key}` was tried, and is on node `{pod.node_name}`: a tried pod has none",
                "remove `spec.nodeName` of the tried pod; its decision has the node",
            )
        if not decision.node and decision.outcome in _WITH_NODE:
            raise self._no_node(decision)
        self._keep(pod, line.pod)
        promised = tuple(self._pod(each) for each in line.engine.promised)
        for each, manifest in zip(promised, line.engine.promised, strict=True):
            self._keep(each, manifest)
        options = self._options(line.engine)
        return Attempt(line.cycle, pod, options, promised, line.engine.time, decision, line.dropped)

    def _keep(self, pod: PodInfo, manifest: Manifest) -> None:
        key = Pod.KIND, pod.key
        self.manifests[key] = manifest
        if key not in self._present:
            self._pods[pod.key] = pod

    def _options(self, line: EngineLine) -> EngineOptions:
        if line.tie_break not in [each.value for each in TieBreak]:
            raise self._error(f"there is no tie-break `{line.tie_break}`")
        if not 0 <= line.percentage <= MAX_PERCENTAGE:
            raise self._error(f"{line.percentage} is not a percentage of nodes")
        if not all(0 <= each <= MAX_INT for each in (line.start_index, line.attempts, line.time)):
            raise self._error("startIndex, attempts and time are from 0 to 2^63 - 1")
        if not -MAX_INT <= line.seed <= MAX_INT:
            raise self._error("a seed has at most 63 bits")
        return EngineOptions(
            seed=line.seed,
            tie_break=TieBreak(line.tie_break),
            percentage=line.percentage,
            start=line.start_index,
            attempts=line.attempts,
        )

    def _no_node(self, decision: Decision) -> InvalidInputError:
        return self._error(
            f"the decision about pod `{decision.pod}` is `{decision.outcome.value}`, and has no node",
            "name its node in `decision.node`, or set `decision.outcome` to `unschedulable`",
        )

    def _decision(self, document: Mapping[str, Any]) -> Decision:
        try:
            return recorded_decision(document)
        except msgspec.ValidationError as error:
            raise self._error(f"the decision is malformed: {error}") from error

    # ---- objects -----------------------------------------------------------------------------------------

    def _pod(self, manifest: Manifest) -> PodInfo:
        ((thing, _),) = self._read([manifest])
        if not isinstance(thing, Pod):
            raise self._error(f"this {thing.KIND} is in the place of a pod")
        return PodInfo.of(thing)

    def _read(self, manifests: list[Manifest]) -> list[tuple[KubeObject, Manifest]]:
        read = read_values(manifests, f"{self.file.name}:{self._line}")
        errors = [each for each in read.diagnostics if each.severity is Severity.ERROR]
        if errors:
            raise InvalidInputError(errors)
        if len(read.objects) != len(manifests):
            kinds = ", ".join(kind for kind, _ in read.unread) or "List"
            raise self._error(f"a record holds no {kinds}")
        return list(zip(read.objects, manifests, strict=True))

    def _error(self, title: str, *help: str) -> InvalidInputError:
        where = f"{self.file.name}:{self._line}" if self._line else self.file.name
        return InvalidInputError([Diagnostic(InputCode.TRACE, title, where=where, help=help)])


def _with_annotations(step: Step, following: Step) -> Step:
    """Return a step with the annotations that its pod got, which are among the changes after it."""
    attempt = step.attempt
    if attempt is None:
        return step
    for change in _placements(following.changes, attempt.pod.key):
        if change.pod.annotations != attempt.pod.annotations:
            return replace(step, attempt=replace(attempt, annotations=change.pod.annotations))
    return step


def _placements(changes: Iterable[StepChange], key: str) -> Iterator[PodPlaced]:
    return (each for each in changes if isinstance(each, PodPlaced) and each.pod.key == key)

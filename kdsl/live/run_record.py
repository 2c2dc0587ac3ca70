"""Records the decisions of a running scheduler, for `kdsl diff --replay`.

The scheduling thread hands over references only, and never waits. Another thread converts and writes them. If
it falls behind, decisions are left out and counted; changes of the cluster are not, so that the record stays
right. A record that can no longer be right ends early, and a log line says so.

An object is recorded with the fields that rules can read. Environment variables, commands and the contents
of volumes are not among them. Labels and annotations are, except the one in which kubectl repeats the object.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from kdsl.base.clock import Clock
from kdsl.base.events import Action
from kdsl.base.frozen_map import freeze
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import MAX_BYTES
from kdsl.cluster.read.reader import Manifest
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.ports import AttemptState
from kdsl.live.writing.known import KnownObjects
from kdsl.records.files import open_record
from kdsl.records.manifests import ObjectId, catalog_manifest, object_id
from kdsl.records.recorder import DecisionRecorder

MOST_WAITING: Final = 20_000
"""The number of waiting messages from which on decisions are left out."""
MOST_MESSAGES: Final = 500_000
"""The number of waiting messages at which a record ends: the writer does not write any more."""
DRAIN: Final = 10.0
"""The seconds in which the last messages are written."""
_IDLE: Final = 0.2
_REPEATS: Final = "kubectl.kubernetes.io/last-applied-configuration"
_TYPES: Final[Mapping[str, type[Pod] | type[Node]]] = {Pod.KIND: Pod, Node.KIND: Node}
_LOG: Final = logging.getLogger(__name__)

Message = Callable[["_Writing"], object]


@dataclass(slots=True)
class RecordCounts:
    """The decisions of a record so far, and those left out."""

    recorded: int = 0
    dropped: int = 0


class RunRecord:
    """A record of one run: a `Tracer` of the engine. `close` is for any other thread."""

    def __init__(self, path: Path, most_waiting: int = MOST_WAITING, most: int = MAX_BYTES) -> None:
        """Open the file, which gets at most `most` bytes, before they are packed.

        Raises KdslError if the file cannot be opened.
        """
        self.counts = RecordCounts()
        self._most_waiting = most_waiting
        self._messages: deque[Message] = deque()
        self._stack = ExitStack()
        write = self._stack.enter_context(open_record(path))
        assert write is not None
        self._writing = _Writing(path, write, most)
        self._is_closing = threading.Event()
        self._is_started = self._is_over = False
        self._thread = threading.Thread(target=self._write_all, name="kdsl-record", daemon=True)
        self._thread.start()

    def attach(self, cache: ClusterCache, known: KnownObjects, clock: Clock) -> None:
        """Observe a cluster; on the scheduling thread, or before it runs."""
        self._cache, self._known, self._clock = cache, known, clock
        cache.observe(self.notice)

    def follow(self, engine: Engine) -> None:
        """Take the options of attempts from this engine."""
        self._engine = engine

    # ---- on the scheduling thread ------------------------------------------------------------------------

    def notice(self, event: ClusterEvent) -> None:
        """Record a change of the cluster; before the first decision there is nothing to change."""
        if not self._is_started or self._is_over:
            return
        raw = b""
        if event.actions != Action.DELETE:
            if event.pod is not None:
                raw = self._known.raw_pod(event.pod.key)
            elif isinstance(event.after, NodeFacts):
                raw = self._known.raw_node(event.after.name)
        bare = ClusterEvent(event.resource, event.actions, event.before, event.after)
        self._send(lambda writing: writing.notice(bare, raw))

    def begin(self, pod: PodInfo, state: AttemptState) -> None:
        """Record the inputs of an attempt, or leave it out if too much waits."""
        if self._is_over:
            return
        if not self._is_started:
            self._start()
        if len(self._messages) >= self._most_waiting:
            self._drop(pod)
            return
        raws = [
            (each.key, self._known.raw_pod(each.key)) for each in (pod, *(one for one, _ in state.promised))
        ]
        options, time = self._engine.options, self._clock.now()
        self.counts.recorded += 1
        self._send(lambda writing: writing.begin(pod, state, raws, options, time))

    def record(self, decision: Decision) -> None:
        """Record a decision."""
        if self._is_started and not self._is_over:
            placed = self._cache.pod(decision.pod)
            self._send(lambda writing: writing.record(decision, placed))

    def _start(self) -> None:
        """Hand over the cluster as it is, which the writer converts."""
        self._is_started = True
        known = self._known
        objects: list[tuple[ObjectId, bytes | CatalogObject]] = [
            ((Node.KIND, info.name), known.raw_node(info.name)) for info in self._cache.nodes()
        ]
        pods = list(self._cache.pods())
        objects += [((Pod.KIND, pod.key), known.raw_pod(pod.key)) for pod in pods]
        objects += [(object_id(each), each) for each in self._cache.objects()]
        options = self._engine.options
        self._send(lambda writing: writing.start(objects, pods, options))

    def _drop(self, pod: PodInfo) -> None:
        if not self.counts.dropped:
            _LOG.warning("the record falls behind: decisions are left out from now on, and counted")
        self.counts.dropped += 1
        self._send(lambda writing: writing.skip(pod))

    def _send(self, message: Message) -> None:
        if len(self._messages) >= MOST_MESSAGES and not self._writing.is_over:
            self._writing.end(f"{MOST_MESSAGES:,} messages wait, its file is not written fast enough")
        if self._writing.is_over:
            self._is_over = True
            _LOG.error("the record ends here: %s", self._writing.problem)
            return
        self._messages.append(message)

    # ---- on other threads --------------------------------------------------------------------------------

    def close(self, drain: float = DRAIN) -> None:
        """Write the waiting messages within `drain` seconds, then the last line: no decision may follow."""
        self._is_closing.set()
        self._thread.join(drain)
        if self._thread.is_alive():
            _LOG.error("the record was not finished within %s s", drain)
        elif self._writing.is_over:
            if not self._is_over:
                _LOG.error("the record ends here: %s", self._writing.problem)
        else:
            counts = self.counts
            _LOG.info("recorded %s decisions, left out %s", counts.recorded, counts.dropped)

    def _write_all(self) -> None:
        messages, writing = self._messages, self._writing
        try:
            while not writing.is_over:
                if messages:
                    messages.popleft()(writing)
                elif self._is_closing.wait(_IDLE) and not messages:
                    writing.finish()
                    break
        except Exception as error:  # noqa: BLE001 - a record must not end a scheduler
            _LOG.exception("the record ended with an error")
            writing.end(f"{type(error).__name__}: {error}")
        # Only this thread takes messages out: the other one would empty the queue under its hands.
        messages.clear()
        try:
            self._stack.close()
        except Exception as error:  # noqa: BLE001 - the file may be on a full disk
            _LOG.error("the record could not be written: %s", error)
            writing.end(str(error))


@dataclass(slots=True)
class _Writing:
    """The writing thread's part. `problem` is the reason for which it is over."""

    path: Path
    write: Callable[[str], object]
    most: int
    is_over: bool = False
    problem: str = ""
    _size: int = 0
    _manifests: dict[ObjectId, Manifest] = field(default_factory=dict)
    _raws: dict[ObjectId, bytes] = field(default_factory=dict)
    _placed: dict[str, PodInfo] = field(default_factory=dict)
    _recorder: DecisionRecorder | None = None

    def start(
        self,
        objects: list[tuple[ObjectId, bytes | CatalogObject]],
        pods: list[PodInfo],
        options: EngineOptions,
    ) -> None:
        for key, thing in objects:
            if isinstance(thing, bytes):
                self._take(key, thing)
            else:
                self._manifests[key] = catalog_manifest(_bare_object(thing))
        self._placed = {pod.key: _bare(pod) for pod in pods}
        for pod in pods:
            # An assumed pod has a node that the server does not know yet.
            spec = self._manifests[Pod.KIND, pod.key]["spec"]
            spec["nodeName"] = pod.node_name
        self._recorder = DecisionRecorder(self._line, self._manifests, options, self._placed.get)
        self._recorder.start(key for key, _ in objects)

    def notice(self, event: ClusterEvent, raw: bytes) -> None:
        pod = event.pod
        if pod is not None:
            if event.actions == Action.DELETE:
                self._placed.pop(pod.key, None)
                self._forget((Pod.KIND, pod.key))
            else:
                self._placed[pod.key] = pod = _bare(pod)
                self._take((Pod.KIND, pod.key), raw)
                event = replace(event, after=pod)
        elif isinstance(event.after, NodeFacts):
            self._take((Node.KIND, event.after.name), raw)
        elif isinstance(event.before, NodeFacts):
            self._forget((Node.KIND, event.before.name))
        elif isinstance(event.after, CatalogObject):
            event = replace(event, after=_bare_object(event.after))
        self._now.notice(event)

    def begin(
        self,
        pod: PodInfo,
        state: AttemptState,
        raws: list[tuple[str, bytes]],
        options: EngineOptions,
        time: int,
    ) -> None:
        for key, raw in raws:
            self._take((Pod.KIND, key), raw)
        promised = tuple((_bare(each), node) for each, node in state.promised)
        self._now.begin(_bare(pod), replace(state, promised=promised), options, time)

    def skip(self, pod: PodInfo) -> None:
        self._now.skip(pod)

    def record(self, decision: Decision, placed: PodInfo | None) -> None:
        if placed is not None:
            self._placed[placed.key] = _bare(placed)
        self._now.record(decision)

    def finish(self) -> None:
        if self._recorder is not None:
            self._recorder.finish()

    def end(self, problem: str) -> None:
        """End the record without its last line."""
        self.problem, self.is_over = problem, True

    @property
    def _now(self) -> DecisionRecorder:
        # INVARIANT: the first message starts the record.
        assert self._recorder is not None
        return self._recorder

    def _line(self, line: str) -> None:
        if self.is_over:
            return
        self._size += len(line) + 1
        if self._size > self.most:
            self.end(f"`{self.path}` has {self.most:,} bytes, the most that can be read again")
            return
        self.write(line)

    def _take(self, key: ObjectId, raw: bytes) -> None:
        """Convert the JSON of an object, once."""
        if raw and self._raws.get(key) is not raw:
            self._raws[key] = raw
            self._manifests[key] = recorded_fields(key[0], raw)

    def _forget(self, key: ObjectId) -> None:
        self._raws.pop(key, None)
        self._manifests.pop(key, None)


def _bare(pod: PodInfo) -> PodInfo:
    """Return a pod without the annotation that repeats its manifest."""
    if _REPEATS not in pod.annotations:
        return pod
    kept = {key: value for key, value in pod.annotations.items() if key != _REPEATS}
    return pod.with_fields(annotations=freeze(kept))


def _bare_object(thing: CatalogObject) -> CatalogObject:
    """Return an object without the annotation that repeats its manifest."""
    meta = thing.metadata
    if _REPEATS not in meta.annotations:
        return thing
    kept = {key: value for key, value in meta.annotations.items() if key != _REPEATS}
    return structs.replace(thing, metadata=structs.replace(meta, annotations=kept))


def recorded_fields(kind: str, raw: bytes) -> Manifest:
    """Return the fields of a pod or node that rules can read, from the JSON of the server."""
    found: dict[str, Any] = msgspec.to_builtins(msgspec.json.decode(raw, type=_TYPES[kind]))
    found["metadata"]["annotations"].pop(_REPEATS, None)
    return {"apiVersion": "v1", "kind": kind, **found}

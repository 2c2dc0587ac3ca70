"""Watches: initial events, changes, bookmarks, and the end of a watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

from kdsl.sandbox.formats.selectors import Selection, read_selection
from kdsl.sandbox.model.errors import Json, expired, too_large_version
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.store import Collection, Event, Version, encode
from kdsl.sandbox.requests.call import AnswerForm, Call, Reply, SandboxState, whole
from kdsl.sandbox.requests.parameters import check_list_options, number, version_number
from kdsl.sandbox.requests.reading import FUTURE_SECONDS
from kdsl.sandbox.requests.tables import partial, table

BOOKMARK_SECONDS: Final = 60.0
_LAST_BOOKMARK_SECONDS: Final = 2.0
_DEFAULT_SECONDS: Final = (1800, 3600)
_MAX_WAITING: Final = 200_000
"""The largest number of frames that wait for a slow reader; beyond it the watch ends, as in the API
server.
"""

_EMPTY_PARTS: Final[dict[str, Json]] = {"pods": {"spec": {"containers": None}, "status": {}}}
"""The fields of a kind's bookmark beside its metadata: the empty object as Go writes it."""


@dataclass(eq=False, slots=True)
class Watch:
    """One open watch."""

    world: SandboxState
    resource: Resource
    selection: Selection
    form: AnswerForm
    include: str
    waiting: list[bytes] = field(default_factory=list)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_ended: bool = False
    is_silent: bool = False
    has_columns: bool = False
    after: int = 0
    """Events up to this number are not sent."""

    def notify(self, event: Event) -> None:
        """Receive an event of the collection."""
        if self.is_silent or event.number <= self.after:
            return
        frame = self.frame(event)
        if frame:
            self.waiting.append(frame)
            if len(self.waiting) > _MAX_WAITING:
                self.is_ended = True
            self.wake.set()

    def end(self) -> None:
        """End the watch after the waiting frames."""
        self.is_ended = True
        self.wake.set()

    def frame(self, event: Event) -> bytes:
        """Return an event as a frame of this watch; empty where it is not selected."""
        kind, version = event.type, event.version
        if self.selection.is_all:
            if self.selection.namespace and version.key[0] != self.selection.namespace:
                return b""
        else:
            was = event.previous is not None and self.selection.matches(event.previous)
            now = kind != "DELETED" and self.selection.matches(version)
            if not was and not now:
                return b""
            if event.previous is not None and was and not now and kind != "DELETED":
                return self._left(event, event.previous)
            kind = kind if kind == "DELETED" else "MODIFIED" if was else "ADDED"
        if self.form.shape == "Table":
            return self.encoded(kind, version)
        shared = (self.resource.group, self.form.shape, kind)
        frame = event.frames.get(shared)
        if frame is None:
            frame = event.frames[shared] = self.encoded(kind, version)
        return frame

    def _left(self, event: Event, previous: Version) -> bytes:
        """Return a deletion for an existing object that is no longer selected: its old state, with the new
        version.
        """
        body = previous.body()
        body["metadata"]["resourceVersion"] = str(event.number)
        return self.encoded("DELETED", Version(previous.key, event.number, body))

    def encoded(self, kind: str, version: Version) -> bytes:
        """Return one frame."""
        if self.form.shape == "Table":
            found = table(self.world, self.resource, [version], self.form, self.include, str(version.number))
            if self.has_columns:
                found["columnDefinitions"] = None
            self.has_columns = True
            data = encode(found)
        elif self.form.shape:
            data = encode(partial(self.resource, version, self.form.version))
        else:
            data = whole(self.resource, version)
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), data)

    def bookmark(self, annotations: Json | None = None) -> bytes:
        """Return a frame that only reports the progress of the watch."""
        metadata: Json = {"resourceVersion": str(self.world.store.number)}
        if annotations:
            metadata["annotations"] = annotations
        parts = _EMPTY_PARTS.get(self.resource.collection, {})
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return encode({"type": "BOOKMARK", "object": {**head, "metadata": metadata, **parts}}) + b"\n"


@dataclass(slots=True)
class Watches:
    """All open watches, so that faults can end or silence them."""

    open: set[Watch] = field(default_factory=set)
    refuses_initial_events: bool = False

    def drop(self, plural: str = "") -> None:
        """End the watches of one resource, or all."""
        for watch in list(self.open):
            if not plural or watch.resource.plural == plural:
                watch.end()

    def silence(self, plural: str = "") -> None:
        """Stop sending events to the open watches of one resource, or all, without ending them."""
        for watch in self.open:
            if not plural or watch.resource.plural == plural:
                watch.is_silent = True

    def start(self, world: SandboxState, call: Call) -> Reply:
        """Answer a watch."""
        query = call.query
        check_list_options(query, True)
        seconds = number(query, "timeoutSeconds")
        wanted = query.get("resourceVersion", "")
        at = version_number(wanted, True) if wanted else 0
        selection = read_selection(call.resource, call.namespace, query)
        include = query.get("includeObject", "Metadata")
        watch = Watch(world, call.resource, selection, call.form, include)
        if seconds <= 0:
            seconds = world.chance.numbers.randint(*_DEFAULT_SECONDS)
        marks = query.get("allowWatchBookmarks") in ("true", "1")
        initial = query.get("sendInitialEvents", "")
        if initial == "true" and self.refuses_initial_events:
            return Reply(200, b"", stream=_refused())
        if initial == "true" and at > world.store.number:
            return Reply(200, b"", stream=_from_the_future(world, at))
        begin = self._begin(watch, at, initial, marks)
        return Reply(200, b"", stream=self._stream(watch, float(seconds), marks, begin))

    def _begin(self, watch: Watch, at: int, initial: str, marks: bool) -> Callable[[], None]:
        collection = watch.world.store.collection(watch.resource)
        if initial == "true" or (not initial and at == 0):
            for version in collection.sorted_versions(watch.selection.namespace):
                if watch.selection.matches(version):
                    watch.waiting.append(watch.encoded("ADDED", version))
            if initial and marks:
                watch.waiting.append(watch.bookmark({"k8s.io/initial-events-end": "true"}))
        elif at and not _replay(watch, collection, at):
            return lambda: None
        self.open.add(watch)
        collection.watchers[watch] = watch.notify

        def leave() -> None:
            self.open.discard(watch)
            collection.watchers.pop(watch, None)

        return leave

    async def _stream(
        self, watch: Watch, seconds: float, marks: bool, leave: Callable[[], None]
    ) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        next_mark = min(clock() + BOOKMARK_SECONDS, end - _LAST_BOOKMARK_SECONDS)
        try:
            yield b""
            while True:
                if watch.waiting:
                    frames, watch.waiting = watch.waiting, []
                    yield b"".join(frames)
                    continue
                now = clock()
                if watch.is_ended or now >= end:
                    return
                if marks and now >= next_mark and not watch.is_silent:
                    next_mark = now + BOOKMARK_SECONDS
                    yield watch.bookmark()
                    continue
                watch.wake.clear()
                until = min(end, next_mark) if marks and next_mark > now else end
                await _wait(watch.wake, until - now)
        finally:
            leave()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _replay(watch: Watch, collection: Collection, at: int) -> bool:
    """Queue the changes since a number; return whether the watch goes on."""
    if at < collection.compacted:
        body = expired(at, collection.compacted)
        watch.waiting.append(encode({"type": "ERROR", "object": body}) + b"\n")
        watch.is_ended = True
        return False
    watch.after = at
    missed: list[Event] = []
    for event in reversed(collection.history):
        if event.number <= at:
            break
        missed.append(event)
    for event in reversed(missed):
        watch.notify(event)
    return True


async def _refused() -> AsyncIterator[bytes]:
    message = (
        "a watch stream was requested by the client but the required storage feature RequestWatchProgress is "
        "disabled"
    )
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    yield encode({"type": "ERROR", "object": {**body, "code": 500}}) + b"\n"


async def _from_the_future(world: SandboxState, at: int) -> AsyncIterator[bytes]:
    yield b""
    await asyncio.sleep(FUTURE_SECONDS)
    body = too_large_version(at, world.store.number)
    yield encode({"type": "ERROR", "object": body}) + b"\n"

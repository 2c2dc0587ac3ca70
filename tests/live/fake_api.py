"""An API server of one resource, in memory, that fails as it is told: what reflectors are tested against."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError

Object = dict[str, Any]
EXPIRED = {
    "kind": "Status",
    "status": "Failure",
    "message": "too old resource version",
    "reason": "Expired",
    "code": 410,
}


def status(code: int, message: str = "", **more: Any) -> Object:
    return {"kind": "Status", "status": "Failure", "message": message, "code": code, **more}


class FakeStream:
    """A watch. `script` lines come first; a frozen one says nothing, and does not end."""

    def __init__(self, api: FakeApi, ends_at: float | None) -> None:
        self.api = api
        self.queue: list[bytes] = []
        self.is_over = False
        self.is_lost = False
        self.is_frozen = False
        self.is_initial = False
        self._ends_at = ends_at
        self._news = asyncio.Event()

    def say(self, kind: str, thing: Object) -> None:
        if not self.is_frozen and not self.is_over:
            self.queue.append(json.dumps({"type": kind, "object": thing}).encode())
            self._news.set()

    def end(self, *, is_lost: bool = False) -> None:
        self.is_over, self.is_lost = True, is_lost
        self._news.set()

    async def lines(self, timeout: float) -> list[bytes]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not self.queue and not self.is_over:
            end = deadline
            if self._ends_at is not None and not self.is_frozen:
                end = min(end, self._ends_at)
            try:
                async with asyncio.timeout_at(end):
                    await self._news.wait()
            except TimeoutError:
                if self.is_frozen and end != deadline:
                    continue
                self.is_over = True
                if end == deadline:
                    raise NoAnswerError("silence", may_be_done=True) from None
            self._news.clear()
        if not self.queue and self.is_lost:
            raise NoAnswerError("reset", may_be_done=True)
        taken, self.queue = self.queue, []
        return taken

    def close(self) -> None:
        self.is_over = True
        self.api.streams.discard(self)


class FakeApi:
    """Serves lists and watches of one resource. `requests` is what it was asked, with the time."""

    def __init__(self, plural: str = "namespaces") -> None:
        self.plural = plural
        self.version = 100
        self.uids = itertools.count(1)
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, str, Object]] = []
        self.oldest = 100
        self.streams: set[FakeStream] = set()
        self.is_down = False
        self.has_watch_list = True
        self.ends_initial_events = True
        self.answers: list[HttpAnswer] = []
        self.first_frames: list[tuple[str, Object]] = []
        self.requests: list[tuple[float, dict[str, str]]] = []
        self.on_open: list[Callable[[], None]] = []

    # What happens in the cluster.

    def put(self, name: str, **labels: str) -> None:
        self.version += 1
        before = self.objects.get(name)
        uid = before["metadata"]["uid"] if before else f"uid-{next(self.uids)}"
        labels = {"n": str(self.version), **labels}
        thing = {
            "metadata": {"name": name, "uid": uid, "resourceVersion": str(self.version), "labels": labels}
        }
        self.objects[name] = thing
        self._happened("MODIFIED" if before else "ADDED", thing)

    def delete(self, name: str) -> None:
        thing = self.objects.pop(name, None)
        if thing is not None:
            self.version += 1
            gone = {"metadata": {**thing["metadata"], "resourceVersion": str(self.version)}}
            self._happened("DELETED", gone)

    def _happened(self, kind: str, thing: Object) -> None:
        self.history.append((self.version, kind, thing))
        for stream in tuple(self.streams):
            stream.say(kind, thing)

    # What goes wrong.

    def cut(self) -> None:
        """Cut all watches."""
        for stream in tuple(self.streams):
            stream.end(is_lost=True)
        self.streams.clear()

    def freeze(self) -> None:
        """Let all watches fall silent, and miss what happens."""
        for stream in self.streams:
            stream.is_frozen = True

    def forget(self) -> None:
        """Compact: no watch can begin before now."""
        self.version += 1
        self.oldest = self.version
        self.history.clear()

    def repeat(self) -> None:
        """Say the last event once more."""
        if self.history:
            for stream in tuple(self.streams):
                stream.say(*self.history[-1][1:])

    def bookmark(self) -> None:
        for stream in tuple(self.streams):
            stream.say("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def error(self, thing: Object) -> None:
        """End all watches with an ERROR frame."""
        for stream in tuple(self.streams):
            stream.say("ERROR", thing)
            stream.end()
        self.streams.clear()

    # What reflectors ask.

    async def probe(self) -> bool:
        return not self.is_down

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        query = self._asked(request)
        if self.answers:
            return self.answers.pop(0)
        version = query.get("resourceVersion", "")
        if version.isdigit() and int(version) > self.version:
            causes = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]}
            return answer(504, status(504, "Timeout: Too large resource version", details=causes))
        token = query.get("continue", "0:0")
        start, listed_at = (int(each) for each in token.split(":"))
        if start and listed_at < self.oldest:
            return answer(410, EXPIRED)
        names = sorted(self.objects)
        limit = int(query.get("limit", 0)) if version != "0" else 0
        end = start + limit if limit else len(names)
        listed = listed_at or self.version
        meta = {"resourceVersion": str(listed)} | (
            {"continue": f"{end}:{listed}"} if end < len(names) else {}
        )
        return answer(200, {"metadata": meta, "items": [self.objects[name] for name in names[start:end]]})

    async def open_lines(self, request: HttpRequest, *, timeout: float) -> HttpAnswer | FakeStream:
        query = self._asked(request)
        if self.answers:
            return self.answers.pop(0)
        stream = FakeStream(self, asyncio.get_running_loop().time() + int(query["timeoutSeconds"]))
        first, self.first_frames = self.first_frames, []
        version = query.get("resourceVersion", "")
        for kind, thing in first:
            stream.say(kind, thing)
        if first:
            stream.end()
        elif "sendInitialEvents" in query:
            if not self.has_watch_list:
                return answer(422, status(422, "sendInitialEvents is forbidden"))
            if version and int(version) > self.version:
                stream.say("ERROR", status(504, "Timeout: Too large resource version: 9, current: 1"))
                return stream
            for thing in self.objects.values():
                stream.say("ADDED", thing)
            ends: Object = {"annotations": {"k8s.io/initial-events-end": "true"}}
            if self.ends_initial_events:
                stream.say("BOOKMARK", {"metadata": {"resourceVersion": str(self.version), **ends}})
            self.streams.add(stream)
        elif int(version) < self.oldest:
            stream.say("ERROR", EXPIRED)
            stream.end()
        else:
            for when, kind, thing in self.history:
                if when > int(version):
                    stream.say(kind, thing)
            self.streams.add(stream)
        while self.on_open:
            self.on_open.pop()()
        return stream

    def _asked(self, request: HttpRequest) -> dict[str, str]:
        query = dict(request.query)
        self.requests.append((asyncio.get_running_loop().time(), query))
        assert request.path.endswith(f"/{self.plural}")
        if self.is_down:
            raise NoAnswerError("connection refused", may_be_done=False)
        return query

    @property
    def kinds(self) -> list[str]:
        """The kinds of the requests."""
        return [_kind(query) for _, query in self.requests]


def _kind(query: dict[str, str]) -> str:
    version = query.get("resourceVersion", "")
    if "sendInitialEvents" in query:
        return f"watchlist {version}".strip()
    if "watch" in query:
        return f"watch {version}"
    parts = ["list", version, f"limit {query['limit']}" if "limit" in query else ""]
    return " ".join(part for part in [*parts, "page" if "continue" in query else ""] if part)


def answer(code: int, body: object, **headers: str) -> HttpAnswer:
    return HttpAnswer(
        code, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()}
    )

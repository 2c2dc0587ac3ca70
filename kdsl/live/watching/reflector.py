"""Mirrors one resource of the server: lists it, watches it, and recovers from failures.

Each resource has one, as a task on the event loop. Changes are delivered in order; a slow receiver slows the
server down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto
from random import Random
from typing import Final, TypeAlias

from kdsl.base.garbage import growing_heap
from kdsl.live.http.messages import HttpAnswer, NoAnswerError
from kdsl.live.watching import queries
from kdsl.live.watching.changes import ObjectChange
from kdsl.live.watching.decode import (
    Bookmark,
    MalformedError,
    Status,
    WatchFrame,
    read_bookmark,
    read_frame,
    read_page,
    read_status,
)
from kdsl.live.watching.mirror import Mirror, Replacement
from kdsl.live.watching.queries import Trouble, trouble_of
from kdsl.live.watching.recovery import Recovery, RetryDelays
from kdsl.live.watching.standing import Standing
from kdsl.live.watching.watch_source import DEFAULT_TIMES, Lines, Source, WatchTimes

Deliver: TypeAlias = Callable[[Sequence[ObjectChange]], Awaitable[int]]

_TURN: Final = 100
"""The number of objects decoded before other tasks get their turn on the event loop."""
_SHORTEST: Final = 1.0
"""Seconds: a watch that ends sooner without the change of an object counts as refused. A server or proxy that
sends a bookmark and ends each watch would otherwise be asked hundreds of times a second.
"""
_ONCE_PER: Final = 30.0
"""Seconds in which a wait is ended early at most once."""
_LONGEST_PAUSE: Final = 60.0
"""The longest Retry-After that is honoured, in seconds."""
_MOST_UNFINISHED: Final = 2
_MISSING: Final = frozenset({Trouble.FORBIDDEN, Trouble.UNAUTHORIZED, Trouble.ABSENT, Trouble.TOO_MANY})
"""The causes for which a plain list would fail like a watch that begins with a list."""
_FRAMES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_UNUSABLE: Final = frozenset({Trouble.EXPIRED, Trouble.TOO_NEW})


class _Next(Enum):
    LIST = auto()
    WATCH = auto()


class _FailedError(Exception):
    """A step failed: report it, wait, and continue with `then`."""

    def __init__(self, trouble: Trouble, text: str, then: _Next, delay: float | None = None) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.then = then
        self.delay = delay


class _RefusedError(Exception):
    """The server does not support watches that begin with the present objects."""


class Reflector:
    """Mirrors one resource; its events go to `mirror`, changes to `deliver`."""

    def __init__(
        self,
        mirror: Mirror,
        source: Source,
        deliver: Deliver,
        standing: Standing,
        recovery: Recovery,
        random: Random,
        times: WatchTimes = DEFAULT_TIMES,
    ) -> None:
        self._mirror = mirror
        self._resource = mirror.resource
        self._source = source
        self._deliver = deliver
        self._standing = standing
        self._recovery = recovery
        self._backoff = RetryDelays(random)
        self._random = random
        self._times = times
        self._version: str | None = None
        """The last version; None at the beginning, empty if the server rejected it as too old."""
        self._called_back_at = float("-inf")
        self._unfinished = 0

    async def run(self) -> None:
        """Mirror the resource until the task is cancelled."""
        todo = _Next.LIST
        while True:
            try:
                todo = await (self._list() if todo is _Next.LIST else self._watch())
            except _FailedError as failure:
                todo = failure.then
                self._standing.failed(failure.trouble, str(failure))
                await self._wait(failure)
            except NoAnswerError as failure:
                self._standing.failed(Trouble.NO_ANSWER, failure.reason)
                await self._wait(_FailedError(Trouble.NO_ANSWER, failure.reason, todo))

    async def _list(self) -> _Next:
        try:
            return await self._watch_list()
        except _RefusedError:
            return await self._plain_list()

    async def _watch_list(self) -> _Next:
        """List and watch by one request, which servers support since 1.32."""
        seconds = self._lifetime()
        request = queries.watch_list(self._resource, self._version or "", seconds)
        stream = await self._source.open_lines(request, timeout=self._times.opening)
        if isinstance(stream, HttpAnswer):
            return self._not_listed(read_status(stream.body, stream.status), stream)
        try:
            collected = self._mirror.replacement()
            rest: list[bytes] = []
            with growing_heap():
                version = await self._collect_all(stream, collected, rest)
            if version == "":
                return _Next.LIST
            await self._put_in_place(collected, version)
            return await self._read(stream, seconds, rest, has_events=True)
        finally:
            stream.close()

    async def _collect_all(self, stream: Lines, collected: Replacement, rest: list[bytes]) -> str:
        """Collect until all objects have arrived; see `_collect`.

        If the server twice omits the bookmark that ends them, fall back to the plain list.
        """
        try:
            while (version := await self._collect(stream, collected, rest)) is None:
                pass
        except (NoAnswerError, _FailedError):
            self._unfinished += 1
            if self._unfinished < _MOST_UNFINISHED:
                raise
            self._unfinished = 0
            raise _RefusedError from None
        self._unfinished = 0
        return version

    async def _collect(self, stream: Lines, collected: Replacement, rest: list[bytes]) -> str | None:
        """Collect initial objects; return their version once all have arrived, else None.

        Returns "" if the requested version is unusable. `rest` gets the lines behind the last object.
        """
        lines = await stream.lines(self._times.listing)
        if not lines:
            raise _FailedError(Trouble.SHORT, "the watch ended before all objects had come", _Next.LIST)
        for number, line in enumerate(lines):
            frame = self._frame(line)
            if frame is None:
                continue
            if frame.type == "BOOKMARK":
                bookmark = self._bookmark(frame)
                if bookmark.ends_initial_events and bookmark.metadata.resource_version:
                    rest.extend(lines[number + 1 :])
                    return bookmark.metadata.resource_version
            elif frame.type == "ERROR":
                self._not_listed(read_status(frame.object), None)
                return ""
            elif frame.type == "DELETED":
                collected.remove(frame.object)
            else:
                collected.add(frame.object)
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        return None

    def _not_listed(self, status: Status, answer: HttpAnswer | None) -> _Next:
        """Choose the next step after a watch that begins with a list was refused."""
        trouble = trouble_of(status)
        if trouble in _UNUSABLE and self._version:
            self._version = ""
            return _Next.LIST
        if trouble in _MISSING:
            raise _FailedError(trouble, _text(status), _Next.LIST, _retry_after(answer))
        raise _RefusedError

    async def _plain_list(self) -> _Next:
        """List, in pages if the server supports that, and watch from there."""
        if self._version is None:
            request = queries.first_list(self._resource)
        elif self._version:
            request = queries.fresh_list(self._resource, self._version)
        else:
            request = queries.newest_list(self._resource)
        collected = self._mirror.replacement()
        is_first, token = True, ""
        while True:
            answer = await self._source.send(request, timeout=self._times.listing)
            if not answer.is_success:
                status = read_status(answer.body, answer.status)
                if trouble_of(status) not in _UNUSABLE or (is_first and not self._version):
                    raise _FailedError(trouble_of(status), _text(status), _Next.LIST, _retry_after(answer))
                # The version, or the next page, has expired: begin again with a complete list.
                self._version, token = "", ""
                request, is_first = queries.newest_list(self._resource, is_paged=is_first), True
                collected = self._mirror.replacement()
                continue
            try:
                page = read_page(answer.body)
            except MalformedError as error:
                raise _FailedError(
                    Trouble.MALFORMED, f"the list cannot be read: {error}", _Next.LIST
                ) from None
            await self._collect_page(page.items or (), collected)
            if not page.metadata.continue_:
                break
            if page.metadata.continue_ == token:
                raise _FailedError(Trouble.MALFORMED, "the list has the same page again", _Next.LIST)
            token = page.metadata.continue_
            request, is_first = queries.newest_list(self._resource, token), False
        await self._put_in_place(collected, page.metadata.resource_version)
        return _Next.WATCH

    async def _collect_page(self, items: Iterable[bytes], collected: Replacement) -> None:
        with growing_heap():
            for number, item in enumerate(items):
                collected.add(item)
                if number % _TURN == _TURN - 1:
                    await asyncio.sleep(0)

    async def _put_in_place(self, collected: Replacement, version: str) -> None:
        changes = collected.finish()
        # Store the version first: stored objects must never be requested again.
        self._version = version
        self._standing.listed(len(self._mirror), await self._deliver(changes))

    async def _watch(self) -> _Next:
        """Watch from the last known version."""
        seconds = self._lifetime()
        request = queries.watch(self._resource, self._version or "", seconds)
        stream = await self._source.open_lines(request, timeout=self._times.opening)
        if isinstance(stream, HttpAnswer):
            status = read_status(stream.body, stream.status)
            trouble = trouble_of(status)
            then = _Next.WATCH if trouble is Trouble.TOO_MANY else _Next.LIST
            raise _FailedError(trouble, _text(status), then, _retry_after(stream))
        self._standing.connected()
        try:
            return await self._read(stream, seconds, [])
        finally:
            stream.close()

    async def _read(
        self, stream: Lines, seconds: int, lines: list[bytes], *, has_events: bool = False
    ) -> _Next:
        """Read events until the stream ends. A stream that had changes of objects may end at any time."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + seconds + self._times.grace
        has_bookmarks = False
        while True:
            if lines:
                kinds = await self._take(lines)
                has_bookmarks |= "BOOKMARK" in kinds
                has_events |= bool(kinds - {"BOOKMARK"})
            left = max(0.0, deadline - loop.time())
            try:
                lines = await stream.lines(min(left, self._times.silence) if has_bookmarks else left)
            except NoAnswerError as failure:
                if has_events or loop.time() - started >= _SHORTEST:
                    self._standing.interrupted()
                    return _Next.WATCH
                raise _FailedError(Trouble.NO_ANSWER, failure.reason, _Next.WATCH) from None
            if not lines:
                if has_events or loop.time() - started >= _SHORTEST:
                    return _Next.WATCH
                raise _FailedError(Trouble.SHORT, "the watch ended at once", _Next.LIST)

    async def _take(self, lines: list[bytes]) -> set[str]:
        """Apply lines of a watch and deliver the changes; return the types of its frames."""
        changes: list[ObjectChange] = []
        kinds: set[str] = set()
        failure: _FailedError | None = None
        for number, line in enumerate(lines):
            frame = self._frame(line)
            if frame is None:
                continue
            kinds.add(frame.type)
            if frame.type == "ERROR":
                failure = self._broken_off(read_status(frame.object))
                break
            if frame.type == "BOOKMARK":
                version = self._bookmark(frame).metadata.resource_version
            else:
                take = self._mirror.drop if frame.type == "DELETED" else self._mirror.put
                version, changed = take(frame.object)
                changes += changed
            self._version = version or self._version
            if number % _TURN == _TURN - 1:
                await asyncio.sleep(0)
        # INVARIANT: changes of the mirror are delivered, even if the watch fails on a later line.
        await self._deliver(changes)
        self._standing.received(len(self._mirror))
        if failure is not None:
            raise failure
        return kinds

    def _broken_off(self, status: Status) -> _FailedError:
        trouble = trouble_of(status)
        is_pause = trouble is Trouble.TOO_MANY
        pause = float(status.details.retry_after_seconds) if is_pause else 0.0
        then = _Next.WATCH if is_pause else _Next.LIST
        return _FailedError(trouble, _text(status), then, min(pause, _LONGEST_PAUSE) if pause > 0 else None)

    def _frame(self, line: bytes) -> WatchFrame | None:
        try:
            frame = read_frame(line)
        except MalformedError as error:
            self._standing.malformed(f"a line of the watch: {error}")
            return None
        if frame.type not in _FRAMES:
            self._standing.malformed(f"a line of the watch has the type {frame.type[:50]!r}")
            return None
        self._standing.event(frame.type)
        return frame

    def _bookmark(self, frame: WatchFrame) -> Bookmark:
        try:
            return read_bookmark(frame.object)
        except MalformedError as error:
            self._standing.malformed(f"a bookmark: {error}")
            return Bookmark()

    def _lifetime(self) -> int:
        return int(self._random.uniform(self._times.shortest, self._times.longest))

    async def _wait(self, failure: _FailedError) -> None:
        """Wait before the next try; if the server was unreachable, only until it answers again."""
        delay = self._backoff.next() if failure.delay is None else failure.delay
        loop = asyncio.get_running_loop()
        is_away = failure.trouble in (Trouble.NO_ANSWER, Trouble.SERVER)
        if not is_away or loop.time() - self._called_back_at < _ONCE_PER:
            await asyncio.sleep(delay)
        elif await self._recovery.wait(delay):
            self._called_back_at = loop.time()
            self._backoff.reset()


def _text(status: Status) -> str:
    return status.message or status.reason or f"the server answered {status.code}"


def _retry_after(answer: HttpAnswer | None) -> float | None:
    """Return the seconds of Retry-After in an answer, None without it."""
    text = "" if answer is None else answer.headers.get("retry-after", "")
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0.0
    return min(seconds, _LONGEST_PAUSE) or None

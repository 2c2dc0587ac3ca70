"""HTTP/1.1 on one connection: sends requests, returns complete answers or streams of lines.

`pool` holds such connections. kdsl has its own client because a library's takes more processor time per
request than the rest of a binding; the parser is httptools (llhttp), which Node.js uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import urlencode

import httptools

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError

MAX_HEAD: Final = 64 * 2**10
"""The most bytes of status line and headers."""
MAX_BODY: Final = 2**30
"""The most bytes of a complete answer: a list of 150,000 pods is about as large."""
MAX_LINE: Final = 32 * 2**20
"""The most bytes of one line of a stream: an object of the API server has up to 3 MiB."""
READ_AHEAD: Final = 2**20
"""The unread bytes of a stream beyond which reading from the server pauses."""

_LOST: Final = "the server closed the connection"


def encode(request: HttpRequest, head: bytes, prefix: str = "") -> bytes:
    """Encode a request as bytes. `head` are the lines common to all requests, `prefix` comes before the path.

    Raises ValueError for an unquoted path.
    """
    path = prefix + request.path
    if not (path.startswith("/") and path.isascii() and path.isprintable() and " " not in path):
        raise ValueError(f"not a quoted path: {path!r}")
    target = f"{path}?{urlencode(request.query)}" if request.query else path
    start = f"{request.method} {target} HTTP/1.1\r\n".encode("ascii")
    if not request.body and request.method in ("GET", "HEAD"):
        return b"".join((start, head, b"\r\n"))
    length = f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n\r\n"
    return b"".join((start, head, length.encode("ascii"), request.body))


class LineStream:
    """The lines of a streamed answer. A slow reader slows the server down."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._lines: list[bytes] = []
        self._part: list[bytes] = []
        self._part_size = 0
        self._waiting = 0
        self._reader: asyncio.Future[None] | None = None
        self._is_over = False
        self._error: NoAnswerError | None = None

    async def lines(self, timeout: float) -> list[bytes]:
        """Return the new lines, at least one; none at the end of the answer.

        Raises NoAnswerError if the connection is lost, or nothing arrives for `timeout` seconds.
        """
        if not self._lines and not self._is_over:
            self._reader = self._loop.create_future()
            timer = self._loop.call_later(timeout, self._expire, timeout)
            try:
                await self._reader
            finally:
                timer.cancel()
                self._reader = None
        if not self._lines and self._error is not None:
            raise self._error
        taken, self._lines, self._waiting = self._lines, [], 0
        self._connection.resume()
        return taken

    def close(self) -> None:
        """End the connection of the stream."""
        self._connection.abort()

    def take(self, piece: bytes) -> None:
        """Add a part of the body."""
        first, *others = piece.split(b"\n")
        self._part.append(first)
        self._part_size += len(first)
        if self._part_size > MAX_LINE:
            self._connection.fail(f"a line of the answer is larger than {MAX_LINE:,} bytes")
            return
        if not others:
            return
        *whole, rest = others
        lines = (b"".join(self._part), *whole)
        self._part, self._part_size = [rest], len(rest)
        self._lines.extend(line for line in lines if line)
        self._waiting += sum(map(len, lines))
        if self._waiting > READ_AHEAD:
            self._connection.pause()
        self._wake()

    def finish(self, error: NoAnswerError | None) -> None:
        """End the stream; `error` is the reason if the answer is incomplete."""
        if not self._is_over:
            self._is_over, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _expire(self, timeout: float) -> None:
        self._connection.fail(f"the server was silent for {timeout:.0f} s")


Outcome: TypeAlias = HttpAnswer | LineStream


class Connection(asyncio.Protocol):
    """A connection that carries one request at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._outcome: asyncio.Future[Outcome] | None = None
        self._stream: LineStream | None = None
        self._wants_lines = False
        self._is_paused = False
        self.idle_since = loop.time()
        self._begin()

    async def ask(self, data: bytes, deadline: float) -> HttpAnswer:
        """Send an encoded request and return its complete answer, before the loop's time `deadline`.

        Raises NoAnswerError; after that, or if the caller is cancelled, the connection is unusable.
        """
        outcome = await self._exchange(data, deadline, wants_lines=False)
        assert isinstance(outcome, HttpAnswer)
        return outcome

    async def open_lines(self, data: bytes, deadline: float) -> Outcome:
        """Send a request whose answer is read line by line; an answer other than 200 is returned complete."""
        return await self._exchange(data, deadline, wants_lines=True)

    @property
    def is_usable(self) -> bool:
        """Return whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing() and self._outcome is None

    @property
    def is_closed(self) -> bool:
        """Return whether the connection is closed."""
        return self._transport is None or self._transport.is_closing()

    @property
    def is_streaming(self) -> bool:
        """Return whether the present answer is a stream."""
        return self._stream is not None

    def abort(self) -> None:
        """Close at once and cancel the present answer."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, reason: str) -> None:
        """Fail the present answer, and close the connection."""
        self._end(NoAnswerError(reason, may_be_done=True))
        self.abort()

    def pause(self) -> None:
        """Pause reading: the server's data stays in its buffers."""
        if self._transport is not None and not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading."""
        if self._transport is not None and self._is_paused and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    async def _exchange(self, data: bytes, deadline: float, *, wants_lines: bool) -> Outcome:
        if not self.is_usable or self._transport is None:
            raise NoAnswerError(_LOST, may_be_done=False)
        outcome: asyncio.Future[Outcome] = self._loop.create_future()
        self._outcome = outcome
        self._wants_lines = wants_lines
        timer = self._loop.call_at(deadline, self._expire)
        self._transport.write(data)
        try:
            return await outcome
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            timer.cancel()
            self._outcome = None
            self.idle_since = self._loop.time()

    def _expire(self) -> None:
        self.fail("the server did not answer in time")

    def _begin(self) -> None:
        """Prepare for the next answer."""
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._status = 0
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0

    def _end(self, error: NoAnswerError) -> None:
        if self._stream is not None:
            self._stream.finish(error)
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_exception(error)

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._outcome is None and self._stream is None:
            self.abort()  # an answer without a request
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(f"the answer is not HTTP: {error}")
            return
        if not self._status:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self.fail(f"the head of the answer is larger than {MAX_HEAD:,} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        has_end = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._status and not has_end and exc is None and self._outcome is not None:
            self.on_message_complete()  # an answer without length ends with its connection
            return
        self._end(NoAnswerError(_LOST if exc is None else f"{_LOST}: {exc}", may_be_done=True))

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        if self._stream is None and (self._outcome is None or self._outcome.done()):
            self.abort()  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._size += len(name) + len(value)
        if self._size > MAX_HEAD:
            self.fail(f"the head of the answer is larger than {MAX_HEAD:,} bytes")

    def on_headers_complete(self) -> None:
        self._size = 0
        status = self._parser.get_status_code()
        if status < 200:
            return  # an interim answer: the final one follows
        self._status = status
        if self._wants_lines and status == 200 and self._outcome is not None and not self._outcome.done():
            self._stream = LineStream(self, self._loop)
            self._outcome.set_result(self._stream)

    def on_body(self, body: bytes) -> None:
        if self._stream is not None:
            self._stream.take(body)
            return
        self._size += len(body)
        self._body.append(body)
        if self._size > MAX_BODY:
            self.fail(f"the answer is larger than {MAX_BODY:,} bytes")

    def on_message_complete(self) -> None:
        if not self._status:
            self._headers = {}
            return
        is_last = not self._parser.should_keep_alive()
        if self._stream is not None:
            self._stream.finish(None)
            self.abort()
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        headers: Mapping[str, str] = self._headers
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(HttpAnswer(self._status, body, headers))
        if is_last:
            self.abort()
        else:
            # The parser goes on with the next answer of the connection.
            self._headers, self._status, self._body, self._size, self._head_size = {}, 0, [], 0, 0

"""The client: sends requests to the API server at a limited rate, with credentials and safe retries.

All packages of `live` send through it; reflectors open their streams here too.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from kdsl.live.http.http1 import Outcome, encode
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.http.pacing import Pace
from kdsl.live.http.pool import Pool

Got = TypeVar("Got", bound=Outcome)

MAX_REPEATS: Final = 10
"""The number of retries of a request answered with Retry-After, and of a read without an answer."""
MAX_RETRY_AFTER: Final = 300
"""The longest Retry-After, in seconds, that the client waits for."""
REPEAT_DELAY: Final = 1.0
DEFAULT_TIMEOUT: Final = 60.0
NOT_WANTED: Final = "the request was not wanted any more when its turn came"

_TOO_MANY: Final = 429
_UNAUTHORIZED: Final = 401
_TOO_LARGE_VERSION: Final = b"ResourceVersionTooLarge"
_READS: Final = frozenset({"GET", "HEAD"})


class Credentials(Protocol):
    """Identifies the client to the server."""

    async def header(self) -> str:
        """Return the value of `Authorization`, empty without credentials."""
        ...

    def refuse(self, header: str) -> bool:
        """Note that the server refused a header; return whether another one may be available."""
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """A sent request, for metrics. `code` is 0 without an answer; times are in seconds.

    `seconds` is the time from sending to the answer, `waited` the wait for the rate limit before it.
    `repeats` counts the earlier tries of the same request; `sent` and `received` are the bytes of both
    bodies.
    """

    verb: str
    host: str
    code: int
    seconds: float
    waited: float
    repeats: int = 0
    sent: int = 0
    received: int = 0


Observer: TypeAlias = Callable[[Sent], None]


def user_agent(version: str, part: str = "") -> str:
    """Return the User-Agent of kdsl; `part` is the component that sends."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"kdsl/{version} ({platform.system().lower()}/{machine})" + (f" {part}" if part else "")


class Client:
    """Sends requests to one server; a `Sender`."""

    def __init__(
        self,
        pool: Pool,
        credentials: Credentials,
        *,
        host: str,
        agent: str,
        prefix: str = "",
        pace: Pace | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        observer: Observer | None = None,
    ) -> None:
        self._pool = pool
        self._credentials = credentials
        self._host = host
        self._prefix = prefix
        self._pace = pace if pace is not None else Pace()
        self._timeout = timeout
        self._observer = observer
        self._lines = f"Host: {host}\r\nUser-Agent: {agent}\r\nAccept: application/json\r\n"
        self._authorization: str | None = None
        self._head = b""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        """Return the answer within `timeout` seconds, repeats included; None: one limit for each of them.

        After an answer with `Retry-After` the request is repeated, 10 times at most; so is a read without an
        answer. Any other answer is returned unchanged. Raises NoAnswerError if there is none.
        """
        loop = asyncio.get_running_loop()
        last = None if timeout is None else loop.time() + timeout
        for repeat in range(MAX_REPEATS + 1):
            try:
                answer = await self._once(request, last, repeat)
            except NoAnswerError:
                delay = REPEAT_DELAY if request.method in _READS else None
                if delay is None or repeat == MAX_REPEATS or not _has_time(last, delay):
                    raise
            else:
                delay = _delay(answer)
                if delay is None or repeat == MAX_REPEATS or not _has_time(last, delay):
                    return answer
            await asyncio.sleep(delay)
        raise AssertionError("the last repeat returns or raises")

    async def try_once(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        """Return the answer to a request that is sent once only; for callers with their own retries."""
        last = None if timeout is None else asyncio.get_running_loop().time() + timeout
        return await self._once(request, last, 0)

    async def open_lines(self, request: HttpRequest, *, timeout: float) -> Outcome:
        """Open a streamed answer; an answer other than 200 is returned complete.

        `timeout` is in seconds until the first line of headers. Streams have no rate limit. Raises
        NoAnswerError.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        return await self._ask(self._pool.open_lines, request, deadline, 0.0, 0)

    async def _once(self, request: HttpRequest, last: float | None, repeat: int) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        waited = await self._pace.take()
        if not request.is_wanted():
            raise NoAnswerError(NOT_WANTED, may_be_done=False)
        deadline = loop.time() + self._timeout if last is None else last
        answer = await self._ask(self._pool.ask, request, deadline, waited, repeat)
        if answer.status == _TOO_MANY:
            self._pace.slow_down()
        return answer

    async def _ask(
        self,
        ask: Callable[[bytes, float], Awaitable[Got]],
        request: HttpRequest,
        deadline: float,
        waited: float,
        repeat: int,
    ) -> Got:
        """Send with credentials, and once more with new ones if the server refuses them."""
        loop = asyncio.get_running_loop()
        header = await self._credentials.header()
        while True:
            started = loop.time()
            code = received = 0
            try:
                outcome = await ask(encode(request, self._head_with(header), self._prefix), deadline)
                if isinstance(outcome, HttpAnswer):
                    code, received = outcome.status, len(outcome.body)
                else:
                    code = 200
            finally:
                if self._observer is not None:
                    seconds, size = loop.time() - started, len(request.body)
                    sent = Sent(request.method, self._host, code, seconds, waited, repeat, size, received)
                    self._observer(sent)
            if code != _UNAUTHORIZED or not self._credentials.refuse(header):
                return outcome
            # A refused request was not carried out. Without newer credentials the answer stands.
            other = await self._credentials.header()
            if other == header:
                return outcome
            header = other

    def _head_with(self, authorization: str) -> bytes:
        if authorization != self._authorization:
            line = f"Authorization: {authorization}\r\n" if authorization else ""
            self._head = (self._lines + line).encode("latin-1")
            self._authorization = authorization
        return self._head


def _delay(answer: HttpAnswer) -> float | None:
    """Return the seconds after which the server wants the request again; None if it does not want it."""
    if answer.status != _TOO_MANY and answer.status < 500:
        return None
    if answer.status == 504 and _TOO_LARGE_VERSION in answer.body:
        return None  # the requested version is in the server's future: waiting does not help
    text = answer.headers.get("retry-after", "")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        return None
    seconds = int(text)
    return float(seconds) if seconds <= MAX_RETRY_AFTER else None


def _has_time(last: float | None, delay: float) -> bool:
    return last is None or asyncio.get_running_loop().time() + delay < last

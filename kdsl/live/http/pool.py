"""Connections to one server, kept open between requests and bounded in number. `client` uses it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.live.http.http1 import Connection, LineStream, Outcome
from kdsl.live.http.messages import HttpAnswer, NoAnswerError

MAX_CONNECTIONS: Final = 64
IDLE: Final = 60.0
"""Seconds after which an idle connection is not used again: servers close idle ones after 90."""
CONNECT_TIME: Final = 10.0
"""The time limit of the connection and of its TLS handshake, in seconds each."""

_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Settings that detect a lost peer within a minute, even on an idle connection."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server. `server_name` is the name that its certificate must have."""

    host: str
    port: int
    server_name: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Pool:
    """Connections to a place. `context` returns the present TLS context, None for plain text.

    If it returns a new one, connections made with the old one are dropped: certificates were rotated.
    """

    def __init__(
        self, place: ServerAddress, context: Callable[[], ssl.SSLContext | None], most: int = MAX_CONNECTIONS
    ) -> None:
        self._place = place
        self._context = context
        self._used: ssl.SSLContext | None = None
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._slots = asyncio.Semaphore(most)

    async def ask(self, data: bytes, deadline: float) -> HttpAnswer:
        """Send an encoded request and return its answer before the loop's time `deadline`.

        Raises NoAnswerError.
        """
        await self._take_slot(deadline)
        try:
            connection = self._take_idle() or await self._connect(deadline)
            try:
                answer = await connection.ask(data, deadline)
            finally:
                self._put_back(connection)
        finally:
            self._slots.release()
        return answer

    async def open_lines(self, data: bytes, deadline: float) -> Outcome:
        """Send a request on its own connection, which ends with the stream; raise NoAnswerError.

        Streams do not count toward the limit of connections: their openers bound them.
        """
        self._refresh()
        connection = await self._connect(deadline)
        self._open.add(connection)
        try:
            outcome = await connection.open_lines(data, deadline)
        except BaseException:
            self._open.discard(connection)
            connection.abort()
            raise
        if isinstance(outcome, LineStream):
            self._open = {each for each in self._open if not each.is_closed}
        else:
            self._open.discard(connection)
            connection.abort()
        return outcome

    def close(self) -> None:
        """Close all connections and cancel their requests."""
        for connection in (*self._idle, *self._open):
            connection.abort()
        self._idle.clear()
        self._open.clear()

    async def _take_slot(self, deadline: float) -> None:
        if not self._slots.locked():
            await self._slots.acquire()  # at once
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise NoAnswerError("no connection became free in time", may_be_done=False) from None

    def _take_idle(self) -> Connection | None:
        self._refresh()
        oldest = asyncio.get_running_loop().time() - IDLE
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and connection.idle_since > oldest:
                self._open.add(connection)
                return connection
            connection.abort()
        return None

    def _put_back(self, connection: Connection) -> None:
        # `_open` does not contain connections made before a rotation.
        if connection in self._open:
            self._open.discard(connection)
            if connection.is_usable:
                self._idle.append(connection)
                return
        connection.abort()

    def _refresh(self) -> None:
        """Drop connections with rotated certificates: idle ones and streams now, busy ones later."""
        context = self._context()
        if context is self._used:
            return
        if self._used is not None:
            for connection in (*self._idle, *(each for each in self._open if each.is_streaming)):
                connection.abort()
            self._idle.clear()
            self._open.clear()
        self._used = context

    async def _connect(self, deadline: float) -> Connection:
        loop = asyncio.get_running_loop()
        place, context = self._place, self._used
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + 2 * CONNECT_TIME)):
                transport, connection = await loop.create_connection(
                    lambda: Connection(loop),
                    place.host,
                    place.port,
                    ssl=context,
                    server_hostname=(place.server_name or place.host) if context else None,
                    ssl_handshake_timeout=CONNECT_TIME if context else None,
                )
        except TimeoutError:
            raise NoAnswerError(f"{place} did not take the connection in time", may_be_done=False) from None
        except (OSError, UnicodeError) as error:
            raise NoAnswerError(f"no connection to {place}: {_reason(error)}", may_be_done=False) from None
        _keep_alive(transport.get_extra_info("socket"))
        self._open.add(connection)
        return connection


def _keep_alive(connected: socket.socket | None) -> None:
    if connected is None:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    # An aborted handshake has no text of its own.
    return getattr(error, "strerror", None) or str(error) or "the server closed it"

"""The HTTPS server of the endpoints; it closes idle and slow connections.

It uses HTTP/1.1, as Prometheus, kubelet and kubectl do.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from kdsl.base.errors import reason_of
from kdsl.live.serving.tls_acceptor import TlsAcceptor

CONNECTIONS: Final = 128
IDLE: Final = 30
"""The longest time that a connection is idle, in seconds."""
HEADERS_WITHIN: Final = 10.0
"""The longest time for a TLS handshake, and for the head of a request, in seconds."""
READ_WITHIN: Final = 30.0
"""The longest time in which a client takes an answer that is sent, in seconds."""
HEAD_BYTES: Final = 32_768
DRAIN: Final = 5
"""The time for requests under way when the server stops, in seconds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a server: connections, and seconds until an idle one is closed.

    As many TLS handshakes may be under way besides.
    """

    connections: int = CONNECTIONS
    idle: int = IDLE


def address_reason(error: OSError) -> str:
    """Return why an address is not available, without the address that `create_server` adds.

    The number of a failed look-up of a name is no `errno`: only the text has the reason.
    """
    return reason_of(error).partition(" (while attempting")[0]


class BoundedProtocol(H11Protocol):
    """A connection that is closed if the head of a request takes too long, or if its answer is not read.

    A new connection beyond the limit `most` ends one without a complete request: connections that say little
    keep no probe away. It is refused if there is none.
    """

    most = CONNECTIONS

    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _made_at = _asked_at = 0.0

    def connection_made(self, transport: Any) -> None:
        if not self._make_room():
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        # Unsent bytes pause writing, however few they are: a transport that is closed waits for ever for a
        # client that does not read. With TLS a limit of 0 is reached by no byte at all.
        transport.set_write_buffer_limits(high=1, low=0)
        self._made_at = self.loop.time()
        self._deadline = self.loop.call_later(HEADERS_WITHIN, self._expire)

    def data_received(self, data: bytes) -> None:
        """Receive bytes. Sending in small pieces does not extend the limit."""
        was_idle = self._is_idle()
        if self._deadline is None and was_idle:
            self._deadline = self.loop.call_later(HEADERS_WITHIN, self._expire)
        super().data_received(data)
        if not self._is_idle():
            self._cancel()
            if was_idle:
                self._asked_at = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        self._cancel_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_unread()

    def _make_room(self) -> bool:
        """End a connection that waits for its client if need be."""
        others: set[Any] = self.connections
        if len(others) < self.most:
            return True
        ours = (each for each in others if isinstance(each, BoundedProtocol))
        waiting = [each for each in ours if each._is_idle() or each.cycle.more_body]
        if not waiting:
            return False
        oldest = min(waiting, key=BoundedProtocol._rank)
        others.discard(oldest)
        oldest.transport.abort()
        return True

    def _rank(self) -> tuple[bool, float]:
        """Return the order in which connections end: those that wait longest for a complete request, then
        those that had one and are idle.
        """
        is_idle = self._is_idle()
        return (is_idle and self.cycle is not None, self._made_at if is_idle else self._asked_at)

    def _is_idle(self) -> bool:
        cycle = self.cycle
        return cycle is None or cycle.response_complete

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cancel_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _expire(self) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()


USUAL_BOUNDS: Final = Bounds()


class _Server(uvicorn.Server):
    """A server without signal handlers of its own, which the process has, and with a limit of handshakes."""

    def __init__(self, config: uvicorn.Config, most: int) -> None:
        super().__init__(config)
        self._most = most
        self.servers: list[asyncio.Server] = []
        self.acceptors: list[TlsAcceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the sockets. That of the base class lets a TLS handshake take a minute."""
        loop, config = asyncio.get_running_loop(), self.config
        for listening in sockets or ():
            if isinstance(config.ssl, ssl.SSLContext):
                most, within = self._most, HEADERS_WITHIN
                acceptor = TlsAcceptor(listening, config.ssl, self._protocol, most, within)
                self.acceptors.append(acceptor)
            else:
                server = await loop.create_server(self._protocol, sock=listening, backlog=config.backlog)
                self.servers.append(server)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; requests under way get a few seconds, handshakes none."""
        for acceptor in self.acceptors:
            acceptor.close()
        await super().shutdown(sockets)
        for acceptor in self.acceptors:
            await acceptor.wait_closed()

    def _protocol(self) -> BoundedProtocol:
        protocol = BoundedProtocol(self.config, self.server_state, {})
        protocol.most = self._most
        return protocol


class Listener:
    """A server on one address, on the running event loop."""

    def __init__(self, app: ASGIApp, tls: ssl.SSLContext | None, bounds: Bounds = USUAL_BOUNDS) -> None:
        self._backlog = bounds.connections
        config = uvicorn.Config(
            app, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, timeout_keep_alive=bounds.idle,
            timeout_graceful_shutdown=DRAIN, h11_max_incomplete_event_size=HEAD_BYTES, proxy_headers=False,
        )  # fmt: skip
        config.load()
        config.ssl = tls
        self._server = _Server(config, bounds.connections)
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    @property
    def connections(self) -> int:
        """Return the number of connections; those in a TLS handshake do not count."""
        return len(self._server.server_state.connections)

    @property
    def handshakes(self) -> int:
        """Return the number of TLS handshakes under way."""
        return sum(acceptor.handshakes for acceptor in self._server.acceptors)

    async def start(self, host: str, port: int) -> None:
        """Listen; `port` 0 takes a free one and stores it in `self.port`. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            host.encode("idna")
        except UnicodeError:
            # A name without a form in ASCII: a socket raises TypeError, and stays open.
            raise socket.gaierror(socket.EAI_NONAME, "name or service not known") from None
        listening = socket.create_server((host, port), family=family, backlog=self._backlog)
        # Head and body of an answer are written apart: without this, the body waits 40 ms for an ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = listening.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve([listening]), name="serving")
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Stop; requests under way get a few seconds."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task

"""Accepts TLS connections: handshakes under way are limited in number and time.

A server of asyncio gets a connection once its handshake is complete, and does not know of those under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kdsl.base.errors import reason_of

RETRY: Final = 1.0
"""The time until connections are accepted again after the system had no room for one, in seconds."""
_LOG: Final = logging.getLogger(__name__)


class TlsAcceptor:
    """Accepts connections on a socket until it is closed, as an `asyncio.Server` does.

    Each completed handshake gets a protocol of `make`. Beyond `most` handshakes, the one that takes longest
    is ended: clients that say nothing keep no other away.
    """

    def __init__(
        self,
        listening: socket.socket,
        tls: ssl.SSLContext,
        make: Callable[[], asyncio.Protocol],
        most: int,
        within: float,
    ) -> None:
        self._listening, self._tls, self._make = listening, tls, make
        self._most, self._within = most, within
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._paused: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._resume()

    @property
    def handshakes(self) -> int:
        """Return the number of handshakes under way."""
        return len(self._handshakes)

    def close(self) -> None:
        """Accept no further connections, and end the handshakes."""
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._listening.fileno())
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait for the end of the handshakes."""
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _resume(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        """Accept one connection: others are served in between."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            # There are too many open files: the socket stays readable.
            _LOG.warning("connections wait: %s", reason_of(error))
            self._loop.remove_reader(self._listening.fileno())
            self._paused = self._loop.call_later(RETRY, self._resume)
            return
        connection.setblocking(False)
        if len(self._handshakes) >= self._most:
            longest = next(iter(self._handshakes))
            del self._handshakes[longest]
            longest.cancel()
        task = self._loop.create_task(self._shake_hands(connection))
        self._handshakes[task] = None
        task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, connection: socket.socket) -> None:
        # A client that ends the handshake, or takes too long for it, is not our mistake.
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(
                self._make,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._within,
                ssl_shutdown_timeout=self._within,
            )

"""The sockets of a sandbox: uvicorn's HTTP protocol on a loopback port that can be cut off and restored."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.server import ServerState

from kdsl.sandbox.certificates import Certificates
from kdsl.sandbox.kubeconfig import write_private

HOST: Final = "127.0.0.1"
_KEEP_ALIVE_SECONDS: Final = 120
_BACKLOG: Final = 2048


class AsgiListener:
    """Accepts connections for an ASGI application. All methods run on the thread of the event loop."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._config: uvicorn.Config | None = None
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._is_partitioned = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, application: Any, certificates: Certificates) -> None:
        """Begin to accept connections; raises OSError where the port is taken."""
        with tempfile.TemporaryDirectory(prefix="kdsl-sandbox-") as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            write_private(certificate, certificates.certificate)
            write_private(key, certificates.key)
            self._config = uvicorn.Config(
                application,
                http="httptools",
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
            self._config.load()
        await self._open()

    async def stop(self) -> None:
        """Close everything and wait for the requests under way."""
        await self._close()
        for _ in range(50):
            if not self._state.tasks:
                return
            await asyncio.sleep(0.01)
        for task in list(self._state.tasks):
            task.cancel()

    def partition(self) -> None:
        """Cut all connections and refuse new ones."""
        self._is_partitioned = True
        self._later(self._close())

    def heal(self) -> None:
        """Accept connections again."""
        if self._is_partitioned:
            self._is_partitioned = False
            self._later(self._open())

    def cut(self) -> None:
        """Cut all connections, but accept new ones."""
        for connection in list(self._state.connections):
            _abort(connection)

    def abort(self, address: tuple[str, int]) -> None:
        """Cut the connection from an address."""
        for connection in list(self._state.connections):
            if getattr(connection, "client", None) == address:
                _abort(connection)

    async def _open(self) -> None:
        if self._config is None or self._server is not None:
            return
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((HOST, self.port))
        except OSError:
            listening.close()
            raise
        self.port = listening.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._protocol, sock=listening, ssl=self._config.ssl, backlog=_BACKLOG
        )

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut()
        await asyncio.sleep(0)

    def _protocol(self) -> Any:
        config = self._config
        assert config is not None
        protocol: Any = config.http_protocol_class
        return protocol(config=config, server_state=self._state, app_state={})

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _abort(connection: Any) -> None:
    transport = getattr(connection, "transport", None)
    if transport is not None:
        transport.abort()

"""A server on a real loopback socket, with or without TLS, that answers as each test scripts it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.live.certificates import CERTIFICATES

Handler = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """The requests, and the number of connections; `handler` answers."""

    handler: Handler
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    _at_once: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            while (start := await reader.readline()) and not writer.is_closing():
                method, target, _ = start.decode().split(" ")
                headers = {}
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(method, target, headers, body)
                self.asked.append(asked)
                await self.handler(asked, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client went away, as some tests have it
        finally:
            self._at_once -= 1
            writer.close()


def answer(code: int, body: bytes = b"{}", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def always(data: bytes) -> Handler:
    async def handle(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return handle


def in_turn(*answers: bytes | None) -> Handler:
    """Give these answers in turn, the last one from then on; None closes the connection."""
    left = list(answers)

    async def handle(asked: Asked, writer: asyncio.StreamWriter) -> None:
        data = left.pop(0) if len(left) > 1 else left[0]
        if data is None:
            writer.close()
        else:
            writer.write(data)

    return handle


def server_context(*, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
    if asks:
        context.load_verify_locations(CERTIFICATES / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    scripted = Scripted(handler)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0, ssl=context)
    scripted.port = server.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        server.close()

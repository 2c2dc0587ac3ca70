"""A small HTTP/1.1 client: requests as they are given, and streams whose bytes are seen as they come."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit


@dataclass(slots=True)
class Answer:
    """The answer to a request. Repeated headers are joined by a comma."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Client:
    """One connection, opened at its first request."""

    def __init__(self, url: str, authority: bytes) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = ssl.create_default_context(cadata=authority.decode())
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes | None
    ) -> Answer:
        """Send a request and return the head of its answer."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        target = f"{path}?{urlencode(query)}" if query else path
        lines = [f"{method} {target} HTTP/1.1", f"host: {self._host}:{self._port}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"content-length: {len(body)}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        await self._writer.drain()
        return await self._read_head()

    async def request(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes | None
    ) -> Answer:
        """Send a request and return its whole answer."""
        answer = await self.send(method, path, query, headers, body)
        answer.body = b"" if method == "HEAD" else b"".join([part async for part in self.parts(answer)])
        return answer

    async def parts(self, answer: Answer) -> AsyncIterator[bytes]:
        """Yield the body of an answer as it comes."""
        assert self._reader is not None
        if answer.headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(answer.headers.get("content-length", "0")))
            return
        while size := int(await self._reader.readline(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readline()

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None

    async def _read_head(self) -> Answer:
        assert self._reader is not None
        first = await self._reader.readline()
        if not first:
            raise ConnectionError("the connection was closed without an answer")
        headers: dict[str, str] = {}
        while line := (await self._reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Answer(int(first.split()[1]), headers)

"""An extender on loopback that gives the recorded answers and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from tests.conformance.scheduler.recording import Json
from tests.conformance.scheduler.writes import Words

_LATE_SECONDS = 1.6
"""Of the extender that takes longer than its second."""


class RecordedExtender:
    """Answers requests about a pod as it was recorded for this pod; the last answer stands for all later."""

    def __init__(self, exchanges: list[Json], words: Words, *, is_late: bool = False) -> None:
        self._words, self._is_late = words, is_late
        self._answers: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for exchange in exchanges:
            asked = exchange["request"]
            self._answers[asked["path"], pod_of(asked["body"])].append(exchange["response"])
        self.asked: list[tuple[str, Any]] = []
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").splitlines()
                headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                status, answer = self._answer(first.split()[1], json.loads(body))
                if self._is_late:
                    await asyncio.sleep(_LATE_SECONDS)
                length = f"content-length: {len(answer)}\r\n\r\n"
                start = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{length}"
                writer.write(start.encode() + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            writer.close()

    def _answer(self, path: str, body: Any) -> tuple[int, bytes]:
        self.asked.append((path, body))
        left = self._answers[path, pod_of(body)]
        if not left:
            return 404, b"not recorded"
        response = left.pop(0) if len(left) > 1 else left[0]
        content = response["body"]
        if isinstance(content, str):
            return response["status"], content.encode()
        return response["status"], self._words.actual(json.dumps(content)).encode()


def pod_of(body: Any) -> str:
    """Return the name of the pod that an extender is asked about."""
    if "PodName" in body:
        return str(body["PodName"])
    return str(body["Pod"]["metadata"]["name"])

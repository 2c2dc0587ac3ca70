"""Talks to a sandbox in tests: requests, watches, and waiting for what comes to be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kdsl.sandbox import Sandbox, SandboxOptions

from tests.conformance.live.http_client import Client

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


class Talk:
    """Requests of one user over one connection, which is opened anew where it was cut."""

    def __init__(self, sandbox: Sandbox, user: str = "admin") -> None:
        self.sandbox = sandbox
        self.user = user
        self.token = sandbox.tokens.of(user)
        self._client = Client(sandbox.url, sandbox.certificates.authority)

    async def __call__(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **query: str
    ) -> tuple[int, Any]:
        """Send a request, a text as it is; return the status and the document."""
        headers = {"authorization": f"Bearer {self.token}", "content-type": media}
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        data = None if text is None else text.encode()
        try:
            answer = await self._client.request(method, path, query, headers, data)
        except (OSError, asyncio.IncompleteReadError):
            await self._client.close()
            raise
        return answer.status, json.loads(answer.body) if answer.body[:1] in b"{[" else answer.body

    async def frames(self, path: str, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the frames of a watch."""
        client = Client(self.sandbox.url, self.sandbox.certificates.authority)
        headers = {"authorization": f"Bearer {self.token}"}
        try:
            answer = await client.send("GET", path, {"watch": "true", **query}, headers, None)
            rest = b""
            async for part in client.parts(answer):
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        finally:
            await client.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


@asynccontextmanager
async def talking(**options: Any) -> AsyncIterator[Talk]:
    """Run a sandbox and talk to it as its administrator."""
    async with Sandbox(SandboxOptions(**options)) as sandbox:
        talk = Talk(sandbox)
        try:
            yield talk
        finally:
            await talk.close()


async def eventually(check: Callable[[], Awaitable[bool]], seconds: float = 5) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.01)


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    """Return a pod to post."""
    containers = [{"name": "c", "image": "img:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def node(name: str = "n1") -> dict[str, Any]:
    """Return a node to post."""
    return {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}


def binding(name: str = "a", target: str = "n1") -> dict[str, Any]:
    """Return a Binding to post."""
    return {"metadata": {"name": name}, "target": {"kind": "Node", "name": target}}

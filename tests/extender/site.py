"""An extender against a sandbox, over HTTP: what its tests ask, as kube-scheduler does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from kdsl.extender.gate import Limits
from kdsl.extender.service import ExtenderOptions, ExtenderService
from kdsl.live.options import ServingOptions
from kdsl.reload import Sources

from tests.live.scenarios.world import Instance, World, empty_world

PLAIN: Final = ServingOptions("127.0.0.1", 0, tls=False)
RULES: Final = Path(__file__).with_name("rules.kdsl")
Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """An answer over HTTP; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Read an answer with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Reply(int(head[0].split()[1]), headers, body)


async def post(port: int, path: str, body: Any, headers: Sequence[str] = (), ssl: Any = None) -> Reply:
    """Send one call on a connection of its own; `body` is bytes, or values for JSON."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=ssl, server_hostname="localhost" if ssl else None
    )
    try:
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
        lines += [f"Content-Length: {len(data)}", "", ""]
        writer.write("\r\n".join(lines).encode() + data)
        return await read_reply(reader)
    finally:
        writer.close()


@dataclass
class Site:
    """A sandbox and an extender that runs against it."""

    world: World
    instance: Instance
    service: ExtenderService

    @property
    def port(self) -> int:
        endpoints = self.instance.process.endpoints
        assert endpoints is not None
        return endpoints.port

    async def call(self, verb: str, body: Any, **options: Any) -> Reply:
        """Call a verb of the extender."""
        return await post(self.port, f"/{verb}", body, **options)

    async def filter(self, pod: Json, *names: str) -> Any:
        """Ask about nodes by name."""
        reply = await self.call("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
        assert reply.status == 200, reply
        return reply.json

    async def bind(self, pod: Json, node: str) -> Reply:
        """Ask to have a pod bound."""
        meta = pod["metadata"]
        body = {
            "PodName": meta["name"],
            "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"],
            "Node": node,
        }
        return await self.call("bind", body)


@asynccontextmanager
async def site(
    *,
    rules: Path = RULES,
    profile: str = "",
    nodes: int = 3,
    limits: Limits | None = None,
    options: ExtenderOptions | None = None,
    **given: Any,
) -> AsyncIterator[Site]:
    """Run an extender on a sandbox with nodes n1, n2 and so on, and wait until it knows them."""
    service = ExtenderService(options or ExtenderOptions(limits=limits or Limits()))
    async with empty_world() as world:
        await world.nodes(nodes)
        instance = await world.start(
            service,
            **{
                "sources": Sources(None, (rules,), (profile,) if profile else (), takes_all=True),
                "serving": PLAIN,
                "advises": True,
                **given,
            },
        )
        yield Site(world, instance, service)

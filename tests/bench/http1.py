"""Processor time of the client per TLS request: python -m tests.bench.http1 [--requests N] [--uvloop]

A server in another process answers each POST of a binding with 201; 64 requests are in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import ssl
import time
from multiprocessing.connection import Connection as Pipe

from kdsl.live.http.client import Client
from kdsl.live.http.messages import HttpRequest
from kdsl.live.http.pacing import Pace
from kdsl.live.http.pool import Pool, ServerAddress

from tests.live.certificates import CERTIFICATES

ANSWER = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
BODY = (
    b'{"kind":"Binding","apiVersion":"v1","metadata":{"name":"pod-12345","namespace":"default",'
    b'"uid":"7e5c0000-0000-0000-0000-000000000000"},"target":{"kind":"Node","name":"node-0001"}}'
)


class Anonymous:
    """No credentials."""

    async def header(self) -> str:
        return "Bearer " + "t" * 900

    def refuse(self, header: str) -> bool:
        return False


class Server(asyncio.Protocol):
    """Answers every request with the same text."""

    HEAD = f"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while len(parts := self.data.split(b"\r\n\r\n", 1)) == 2 and len(parts[1]) >= len(BODY):
            self.data = parts[1][len(BODY) :]
            self.transport.write(self.HEAD.encode() + ANSWER)  # type: ignore[attr-defined]


def serve(pipe: Pipe) -> None:
    async def run() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=context)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def measure(port: int, requests: int) -> tuple[float, float]:
    context = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.crt"))
    pool = Pool(ServerAddress("127.0.0.1", port), lambda: context)
    client = Client(pool, Anonymous(), host="localhost", agent="kdsl/bench", pace=Pace(0))
    left = iter(range(requests))

    async def work() -> None:
        for each in left:
            path = f"/api/v1/namespaces/default/pods/pod-{each}/binding"
            assert (await client.send(HttpRequest("POST", path, BODY))).status == 201

    await asyncio.gather(*(work() for _ in range(64)))  # warm: connections are made
    left = iter(range(requests))
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(64)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    pool.close()
    return cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    factory = None
    if options.uvloop:
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        cpu, wall = runner.run(measure(port, options.requests))
    server.terminate()
    print(
        f"{cpu / options.requests * 1e6:.1f} us of processor time, {options.requests / wall:,.0f} requests/s"
    )


if __name__ == "__main__":
    main()

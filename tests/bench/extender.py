"""How fast `/filter` is over HTTP: python -m tests.bench.extender --nodes 1000

The extender, the API server (`kdsl sandbox`) and the caller are a process each; processor time is the extender's
alone. Nodes have 8 cards that pods share, calls name all nodes (nodeCacheCapable) and come on connections that stay
open: one after the other, and many at once. With `--whole` calls bring the nodes themselves.
`--bind N` has N pods filtered and bound one after the other, so that the cluster changes between calls.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import click
import msgspec
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.http.messages import HttpRequest

from tests.bench import shapes
from tests.bench.live_parts import NAMESPACE, Feeder, sandbox

_TICKS = os.sysconf("SC_CLK_TCK")
_KINDS = 40
_READY_WITHIN = 120.0


@dataclass(frozen=True)
class Load:
    """The times of calls: seconds of each, of all, and processor seconds of the extender."""

    seconds: Sequence[float]
    whole: float
    processor: float
    refused: int

    def text(self, name: str) -> str:
        ordered, done = sorted(self.seconds), len(self.seconds)
        p50, p99 = ordered[done // 2], ordered[min(done - 1, done * 99 // 100)]
        return (
            f"{name:<16} {done / self.whole:>8.0f} calls/s   p50 {p50 * 1e3:>7.2f} ms   p99 {p99 * 1e3:>7.2f} ms   "
            f"processor {self.processor / done * 1e3:>6.2f} ms a call   {self.refused} refused"
        )


class Extender:
    """`kdsl extender` as a process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process, self.port = process, port

    @property
    def processor(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def status(self, key: str) -> str:
        """Return a line of what the system knows of the process, such as VmHWM or Threads."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{key}:"))


@contextmanager
def extender(kubeconfig: Path, profile: str, folder: Path, behaviour: str = "rules") -> Iterator[Extender]:
    """Run an extender until the end of the block."""
    command = [sys.executable, "-m", "kdsl.cli.main", "extender", "--kubeconfig", str(kubeconfig)]
    command += [
        "--profile",
        profile,
        "--behaviour",
        behaviour,
        "--plain-http",
        "--bind-address",
        "127.0.0.1",
        "--secure-port",
        "18443",
    ]
    log = folder / "extender.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file, text=True)
    try:
        end = time.monotonic() + _READY_WITHIN
        while "the cluster is known" not in log.read_text():
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield Extender(process, 18443)
    finally:
        process.terminate()
        process.wait()


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, verb: str, body: bytes
) -> tuple[int, bytes]:
    writer.write(
        f"POST /{verb} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def _load(port: int, bodies: Sequence[bytes], calls: int, at_once: int) -> tuple[list[float], int]:
    """Have calls answered, so many at once."""
    numbers, seconds, refused = count(), list[float](), 0

    async def worker() -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (number := next(numbers)) < calls:
            started = time.perf_counter()
            status, answer = await _call(reader, writer, "filter", bodies[number % len(bodies)])
            seconds.append(time.perf_counter() - started)
            refused += status == 503
            assert status == 503 or b'"NodeNames":["' in answer or b'"Nodes":{"items":[{' in answer, answer[
                :300
            ]
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
    return seconds, refused


def measure(served: Extender, bodies: Sequence[bytes], calls: int, at_once: int) -> Load:
    """Return what came of so many calls."""
    before, started = served.processor, time.perf_counter()
    seconds, refused = asyncio.run(_load(served.port, bodies, calls, at_once))
    return Load(seconds, time.perf_counter() - started, served.processor - before, refused)


async def _bind_all(port: int, pods: Sequence[dict[str, Any]], names: Sequence[str]) -> list[float]:
    """Filter and bind pods one after the other; return the seconds of each filter."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds = []
    for number, pod in enumerate(pods):
        started = time.perf_counter()
        _, answer = await _call(reader, writer, "filter", _body(pod, names))
        seconds.append(time.perf_counter() - started)
        left = msgspec.json.decode(answer)["NodeNames"]
        asked = {
            "PodName": pod["metadata"]["name"],
            "PodNamespace": NAMESPACE,
            "PodUID": "",
            "Node": left[number % len(left)],
        }
        status, answer = await _call(reader, writer, "bind", msgspec.json.encode(asked))
        assert (status, answer) == (200, b"{}"), answer
    writer.close()
    return seconds


async def _made(kubeconfig: Path, pods: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make pods, and return them as the API server has them."""
    connection = await Connection.open(AccessOptions(kubeconfig))
    client, found = connection.client(qps=0), []
    for pod in pods:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        answer = await client.send(HttpRequest("POST", path, msgspec.json.encode(pod)))
        assert answer.status == 201, answer.body
        found.append(msgspec.json.decode(answer.body))
    connection.close()
    return found


def measure_hami(
    served: Extender, kubeconfig: Path, shape: str, names: Sequence[str], rounds: Sequence[int], calls: int
) -> None:
    """Have pods filtered in HAMi's place, each once: it is written to, and its cards are taken from then on."""
    pods = iter(
        asyncio.run(_made(kubeconfig, list(shapes.pending_pods(shape, _KINDS + calls * len(rounds)))))
    )
    measure(served, [_body(pod, names) for pod in islice(pods, _KINDS)], _KINDS, 1)
    for number in rounds:
        bodies = [_body(pod, names) for pod in islice(pods, calls)]
        print(measure(served, bodies, calls, number).text(f"{number} at once"))


def _body(pod: dict[str, Any], names: Sequence[str]) -> bytes:
    return msgspec.json.encode({"Pod": pod, "Nodes": None, "NodeNames": names})


def _whole(pod: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None})


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--shape", default=shapes.GPU_SHARING, show_default=True)
@click.option("--profile", default="devices.profiles.gpu", show_default=True)
@click.option("--calls", default=1000, show_default=True, help="In each round.")
@click.option("--at-once", default="1,8,200", show_default=True, help="How many, a round each.")
@click.option("--whole", is_flag=True, help="Send whole nodes.")
@click.option("--bind", default=0, help="So many pods are filtered and bound.")
@click.option(
    "--behaviour", default="rules", show_default=True, help="With `hami` each call is for a pod of its own."
)
def main(
    nodes: int, shape: str, profile: str, calls: int, at_once: str, whole: bool, bind: int, behaviour: str
) -> None:
    """Measure /filter over HTTP."""
    pods = list(islice(shapes.pending_pods(shape, _KINDS), _KINDS))
    cluster = list(shapes.nodes(shape, nodes))
    names = [node["metadata"]["name"] for node in cluster]
    bodies = [_whole(pod, cluster) if whole else _body(pod, names) for pod in pods]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            sandbox(folder, shape, nodes, nodes) as kubeconfig,
            extender(kubeconfig, profile, folder, behaviour) as served,
        ):
            print(f"{nodes} nodes, bodies of {len(bodies[0]):,} bytes, memory {served.status('VmRSS')}")
            if behaviour == "hami":
                rounds = list(map(int, at_once.split(",")))
                measure_hami(served, kubeconfig, shape, names, rounds, calls)
                return
            measure(served, bodies, 2 * _KINDS, 1)
            for number in map(int, at_once.split(",")):
                print(measure(served, bodies, max(calls, number), number).text(f"{number} at once"))
            if bind:
                feeder = Feeder(kubeconfig, shape)
                feeder.create(bind)
                made = list(shapes.pending_pods(shape, bind))
                before, started = served.processor, time.perf_counter()
                seconds = asyncio.run(_bind_all(served.port, made, names))
                whole_time = time.perf_counter() - started
                print(Load(seconds, whole_time, served.processor - before, 0).text("filter, bind"))
                feeder.close()
            print(f"peak memory {served.status('VmHWM')}, threads {served.status('Threads')}")


if __name__ == "__main__":
    main()

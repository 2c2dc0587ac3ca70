"""The sandbox and the feeder of `tests.bench.live`, each in a process of its own.

Their processor time must not count as the scheduler's.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.http.messages import HttpRequest

from tests.bench import shapes

NAMESPACE = "bench"
_CREATIONS_AT_ONCE = 16


@contextmanager
def sandbox(folder: Path, shape: str, nodes: int, bound: int) -> Iterator[Path]:
    """Run a sandbox with a cluster; yield its kubeconfig."""
    cluster, kubeconfig = folder / "cluster.jsonl", folder / "kubeconfig"
    with cluster.open("w") as file:
        for each in chain(shapes.nodes(shape, nodes), shapes.bound_pods(shape, bound, nodes)):
            file.write(json.dumps(each) + "\n")
        file.write(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    command = [sys.executable, "-m", "kdsl.cli.main", "sandbox", "--no-kubelets", "--no-controllers"]
    command += ["--cluster", str(cluster), "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "sandbox at" in process.stdout.readline(), "the sandbox did not start"
        yield kubeconfig
    finally:
        process.terminate()
        process.wait()


class Feeder:
    """Creates pods from another process."""

    def __init__(self, kubeconfig: Path, shape: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_feed, args=(theirs, kubeconfig, shape), daemon=True)
        self._process.start()

    def create(self, pods: int, pause: float = 0.0) -> None:
        """Begin to create so many pods; with a `pause`, one after the other with so many seconds between."""
        self._pipe.send((pods, pause))

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _feed(pipe: Pipe, kubeconfig: Path, shape: str) -> None:
    asyncio.run(_run(pipe, kubeconfig, shape))


async def _run(pipe: Pipe, kubeconfig: Path, shape: str) -> None:
    connection = await Connection.open(AccessOptions(kubeconfig))
    client = connection.client(qps=0)
    made = 0

    async def create(rest: Iterator[dict[str, Any]], pause: float) -> None:
        for pod in rest:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods"
            answer = await client.send(HttpRequest("POST", path, json.dumps(pod).encode()))
            assert answer.status == 201, answer.body
            await asyncio.sleep(pause)

    while True:
        pods, pause = await asyncio.to_thread(pipe.recv)
        rest = iter(list(shapes.pending_pods(shape, made + pods))[made:])
        made += pods
        await asyncio.gather(*(create(rest, pause) for _ in range(1 if pause else _CREATIONS_AT_ONCE)))

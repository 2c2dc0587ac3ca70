"""A sandbox with the quickstart's cluster and a scheduler on it, for commands that ask a running cluster."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import uvloop
from kdsl.base.diagnostic import Diagnostic
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.options import RunOptions, ServingOptions
from kdsl.live.process import SchedulerProcess
from kdsl.sandbox import SandboxOptions
from kdsl.sandbox.loading import load
from kdsl.sandbox.thread import SandboxThread

CLUSTER = "examples/quickstart/cluster.yaml"
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: report, namespace: finance}
spec: {containers: [{name: main, image: a, resources: {requests: {cpu: "100"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop}
spec: {containers: [{name: main, image: a, resources: {requests: {cpu: "1"}}}]}
"""
PATIENCE = 20.0


class Site:
    """The sandbox and the scheduler, from `with` on; each has a thread."""

    def __init__(self, folder: Path, pods: str = PODS, record: Path | None = None) -> None:
        """`pods` are those of `PODS`, and perhaps others; `record` is the file of a recorded run."""
        self._record = record
        self.kubeconfig = folder / "kubeconfig"
        self._pods = folder / "pods.yaml"
        self._pods.write_text(pods)
        self._sandbox = SandboxThread(SandboxOptions(kubeconfig=self.kubeconfig))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._process: SchedulerProcess | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def server(self) -> str:
        """Where the scheduler serves."""
        assert self._process is not None and self._process.endpoints is not None
        return f"https://127.0.0.1:{self._process.endpoints.port}"

    def __enter__(self) -> Self:
        self._sandbox.__enter__()
        found: list[Diagnostic] = []
        self._sandbox.call(lambda sandbox: load(sandbox.world, (CLUSTER, self._pods), found))
        assert not found
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self._has_settled():
            assert time.monotonic() < deadline, "the scheduler does not come up"
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._process is not None:
            self._loop.call_soon_threadsafe(self._process.stop)
        self._thread.join(PATIENCE)
        self._sandbox.__exit__(kind, error, trace)

    def _has_settled(self) -> bool:
        """Return whether the pod that fits nowhere has been tried, and the one that fits is placed."""
        process = self._process
        if process is None or process.endpoints is None:
            return False
        waits, goes = (process.decisions.of_pod(key) for key in ("finance/report", "shop/web-1"))
        return waits is not None and goes is not None

    def _run(self) -> None:
        options = RunOptions(
            "test",
            "one",
            access=AccessOptions(self.kubeconfig, environment={}),
            lease=None,
            serving=ServingOptions("127.0.0.1", 0),
            drain=1.0,
            record=self._record,
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(options))

    async def _serve(self, options: RunOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = SchedulerProcess(options, Random(1))
        await self._process.run()

"""The cost and speed of `kdsl run`: python -m tests.bench.live --nodes 1000 --pods 1000

The API server is `kdsl sandbox` in another process, pods are created by a third; processor time is that of the
scheduler's process alone. Each round lets pods come while nothing is decided, and then has them decided and
bound: so the parts are told apart. Of several rounds the least counts, since others use the machine too.
`--sync` starts `kdsl run` on a cluster that is there, `--latency` has pods come one by one.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
import uvloop
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.hooks.specs import QueuedPod
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.options import RunOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.watching.changes import ObjectChange

from tests.bench.live_parts import Feeder, sandbox

_LOOK_EVERY = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")
_PROFILED = 40


class Bench(SchedulerProcess):
    """A scheduler that can be held back, and tells when pods are seen and bound."""

    def __init__(self, kubeconfig: Path) -> None:
        options = RunOptions(
            "bench", "0", access=AccessOptions(kubeconfig), lease=None, serving=None, reload_every=3600.0
        )
        super().__init__(options, Random(0))
        self.is_held = False
        self.seen: dict[str, float] = {}
        self.bound: dict[str, float] = {}

    def release(self) -> None:
        """Decide from now on."""
        self.is_held = False
        self.inbox.post(lambda: None)

    async def _assemble(self, connection: Connection) -> None:
        await super()._assemble(connection)
        put = self.inbox.put

        async def noted(changes: Sequence[ObjectChange]) -> int:
            now = time.perf_counter()
            for change in changes:
                self.seen.setdefault(change.key, now)
            return await put(changes)

        self.inbox.put = noted  # type: ignore[method-assign]
        self.scheduler.loop.listen(self)

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Hear of an attempt."""

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Hear what came of a binding."""
        if decision.outcome is Outcome.PLACED:
            self.bound[pod.key] = time.perf_counter()

    @property
    def is_quiet(self) -> bool:
        """Return whether all pods are bound, known to be bound, and reported."""
        known = self.scheduler.known
        return not known.pending() and self.scheduler._writers.recorder.is_idle and not self.inbox.backlog

    def _leads(self) -> bool:
        return not self.is_held and super()._leads()


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of processor time, of the process and of the event loop's thread, and of the clock."""

    process: float
    loop: float
    wall: float

    @staticmethod
    def now() -> Costs:
        """Return those up to now."""
        return Costs(time.process_time(), time.thread_time(), time.perf_counter())

    def since(self, start: Costs) -> Costs:
        """Return those between two moments."""
        return Costs(self.process - start.process, self.loop - start.loop, self.wall - start.wall)

    def per_pod(self, pods: int) -> dict[str, float]:
        """Return microseconds of a pod."""
        parts = {
            "process": self.process,
            "event loop": self.loop,
            "scheduling thread": self.process - self.loop,
        }
        return {name: round(seconds / pods * 1e6, 1) for name, seconds in parts.items()}


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < end, "it takes too long"
        await asyncio.sleep(_LOOK_EVERY)


async def measure_backlog(process: Bench, feeder: Feeder, pods: int, rounds: int) -> dict[str, Any]:
    """Let pods come, then have them bound; return the least of each part and the best rate."""
    coming, binding, rates = [], [], []
    for number in range(rounds + 1):
        process.seen.clear()
        process.bound.clear()
        process.is_held = True
        start = Costs.now()
        feeder.create(pods)
        await until(lambda: len(process.seen) >= pods and not process.inbox.backlog)
        came = Costs.now().since(start)
        start = Costs.now()
        process.release()
        await until(lambda: len(process.bound) >= pods and process.is_quiet)
        ended = Costs.now().since(start)
        if number:  # the first warms up
            coming.append(came.per_pod(pods))
            binding.append(ended.per_pod(pods))
            rates.append(pods / (max(process.bound.values()) - start.wall))
    least = {"seen": _least(coming), "decided, bound, told": _least(binding)}
    total = sum(each["process"] for each in least.values())
    return {"us_per_pod": {**least, "sum": round(total, 1)}, "bound_per_second": round(max(rates))}


def _least(rounds: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    return min(rounds, key=lambda each: each["process"])


async def measure_latency(process: Bench, feeder: Feeder, pods: int) -> dict[str, Any]:
    """Let pods come one by one; return how long each waited from being seen to being bound."""
    process.seen.clear()
    process.bound.clear()
    feeder.create(pods, pause=0.02)
    await until(lambda: len(process.bound) >= pods)
    times = sorted(process.bound[key] - process.seen[key] for key in process.bound)
    return {f"p{part}_ms": round(times[len(times) * part // 100] * 1e3, 2) for part in (50, 90, 99)}


async def run_with(kubeconfig: Path, work: Callable[[Bench], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Run a scheduler, and `work` once it is synced."""
    process = Bench(kubeconfig)
    running = asyncio.create_task(process.run())
    await until(lambda: running.done() or (hasattr(process, "scheduler") and process.watches.is_ready))
    if running.done():
        running.result()
    await asyncio.sleep(0.3)  # the heap is settled
    try:
        return await work(process)
    finally:
        process.stop()
        await running


def measure_sync(kubeconfig: Path) -> dict[str, Any]:
    """Start `kdsl run`; return the time until it knows the cluster, and what that took."""
    command = [
        sys.executable,
        "-m",
        "kdsl.cli.main",
        "run",
        "--kubeconfig",
        str(kubeconfig),
        "--secure-port",
        "0",
    ]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--no-leader-elect"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "the cluster is known" in line)
        wall = time.perf_counter() - start
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    finally:
        process.terminate()
        process.wait()
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    known = line.rpartition(": ")[2].strip()
    return {
        "known": known,
        "seconds": round(wall, 2),
        "processor_seconds": round(cpu, 2),
        "MiB": pages * 4 // 1024,
    }


def profiled(threads: list[cProfile.Profile]) -> None:
    """Have every thread that starts from now on profiled, and this one."""

    def begin(*_: object) -> None:
        sys.setprofile(None)
        profile = cProfile.Profile(time.thread_time)
        threads.append(profile)
        profile.enable()

    threading.setprofile(begin)
    begin()


@click.command()
@click.option("--nodes", default=1000, show_default=True)
@click.option("--pods", default=1000, show_default=True, help="Pods that come in a round, or one by one.")
@click.option("--bound", default=1000, show_default=True, help="Pods that are there and bound.")
@click.option("--shape", default="basic", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--sync", is_flag=True, help="Measure the start instead.")
@click.option("--latency", is_flag=True, help="Measure single pods instead.")
@click.option("--uvloop", "is_uvloop", is_flag=True, help="Run on uvloop's event loop.")
@click.option("--profile", is_flag=True, help="Print where the time of each thread goes.")
def main(
    nodes: int,
    pods: int,
    bound: int,
    shape: str,
    rounds: int,
    sync: bool,
    latency: bool,
    is_uvloop: bool,
    profile: bool,
) -> None:
    """Measure, and print JSON."""
    with tempfile.TemporaryDirectory() as folder, sandbox(Path(folder), shape, nodes, bound) as kubeconfig:
        figures = {"nodes": nodes, "bound": bound}
        if sync:
            print(json.dumps(figures | measure_sync(kubeconfig), indent=2))
            return
        feeder = Feeder(kubeconfig, shape)

        async def work(process: Bench) -> dict[str, Any]:
            if latency:
                return await measure_latency(process, feeder, pods)
            return await measure_backlog(process, feeder, pods, rounds)

        factory = uvloop.new_event_loop if is_uvloop else None
        threads: list[cProfile.Profile] = []
        if profile:
            profiled(threads)
        with asyncio.Runner(loop_factory=factory) as runner:
            figures |= runner.run(run_with(kubeconfig, work))
        for each in threads:
            each.disable()
        feeder.close()
        for each in threads:
            pstats.Stats(each).sort_stats("tottime").print_stats(_PROFILED)
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

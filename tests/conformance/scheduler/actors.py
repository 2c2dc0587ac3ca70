"""The scheduler of a scenario: on this event loop, or as a process where the recording ends it by a signal."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from random import Random
from typing import Any, Protocol

import yaml
from kdsl.base.span import Source
from kdsl.config.imports import import_configuration
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.election.leader import LeaseOptions
from kdsl.live.options import RunOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.running import new_instance
from kdsl.reload import Sources
from kdsl.sandbox import Sandbox

from tests.conformance.scheduler.recording import Json, Scenario

HOST = "stage-host"
LEASE = "kube-scheduler"
_MAIN = "from kdsl.cli.main import main; main()"
_CONTEXT = "kdsl-sandbox-scheduler"
_READY_SECONDS = 60.0
_END_SECONDS = 12.0


class Actor(Protocol):
    """A scheduler under way."""

    @property
    def is_running(self) -> bool:
        """Return whether the actor still runs."""

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while the actor runs."""

    @property
    def log(self) -> str:
        """The output, and the cause of a failure."""

    async def idle(self) -> None:
        """Wait until it knows the cluster."""

    async def signal(self, *, is_kill: bool) -> None:
        """Ask the actor to end."""

    async def end(self) -> None:
        """End it, and wait for that."""


async def start(scenario: Scenario, sandbox: Sandbox, folder: Path, extender_url: str) -> Actor:
    """Start a scheduler for a scenario."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(sandbox.kubeconfig, encoding="utf-8")
    configuration = _configuration(scenario, folder, extender_url)
    lease = _lease(scenario.config.get("leaderElection", {}))
    if scenario.name.startswith("leader-") or scenario.name == "sigterm":
        assert lease is not None
        return await ProcessActor.start(kubeconfig, configuration, lease)
    return LoopActor(
        RunOptions(
            host=HOST,
            instance=new_instance(),
            sources=Sources(configuration),
            access=AccessOptions(kubeconfig, _CONTEXT),
            lease=lease,
            serving=None,
            drain=0.5,
        )
    )


class LoopActor:
    """The parts that `kdsl run` runs, on this event loop."""

    def __init__(self, options: RunOptions) -> None:
        self._process = SchedulerProcess(options, Random(1))
        self._task = asyncio.ensure_future(self._process.run())

    @property
    def is_running(self) -> bool:
        return not self._task.done()

    @property
    def exit_code(self) -> int | None:
        return None if self.is_running else int(self._task.exception() is not None)

    @property
    def log(self) -> str:
        failed = self._task.done() and not self._task.cancelled() and self._task.exception()
        return f"{failed!r}" if failed else ""

    async def idle(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            if self._task.done():
                self._task.result()
            if time.monotonic() > deadline:
                raise TimeoutError("the scheduler does not know the cluster, or does not lead")
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)

    def _is_ready(self) -> bool:
        """Return whether it knows the cluster, and leads if leaders are elected: an event about that follows."""
        process = self._process
        if not (hasattr(process, "watches") and process.watches.is_ready):
            return False
        return process.leader is None or process.leader.is_leader

    async def signal(self, *, is_kill: bool) -> None:
        assert not is_kill, "a process is needed for that"
        self._process.stop()

    async def end(self) -> None:
        self._process.stop()
        _, late = await asyncio.wait([self._task], timeout=_END_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class ProcessActor:
    """`kdsl run` as a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._log = bytearray()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, kubeconfig: Path, configuration: Path, lease: LeaseOptions) -> ProcessActor:
        """Start it with its endpoints off."""
        options = {
            "--config": configuration, "--kubeconfig": kubeconfig, "--context": _CONTEXT,
            "--leader-elect-resource-name": lease.name, "--leader-elect-resource-namespace": lease.namespace,
            "--leader-elect-lease-duration": lease.duration, "--leader-elect-renew-deadline": lease.deadline,
            "--leader-elect-retry-period": lease.retry, "--secure-port": 0,
        }  # fmt: skip
        arguments = [str(word) for pair in options.items() for word in pair]
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", _MAIN, "run", *arguments,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )
        )  # fmt: skip

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def log(self) -> str:
        return self._log.decode("utf-8", "replace")

    async def idle(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while b"the cluster is known" not in self._log:
            if time.monotonic() > deadline or not self.is_running:
                raise TimeoutError(f"the scheduler does not know the cluster: {self.log}")
            await asyncio.sleep(0.02)

    async def signal(self, *, is_kill: bool) -> None:
        self._process.send_signal(signal.SIGKILL if is_kill else signal.SIGTERM)

    async def end(self) -> None:
        if self.is_running:
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self._log += line


def _configuration(scenario: Scenario, folder: Path, extender_url: str) -> Path:
    """Write the rules and settings that a scheduler configuration becomes; return the settings' file."""
    text = yaml.safe_dump(_without_connection(scenario.config), sort_keys=False)
    for placeholder in ("<extender>", "<nothing-listens-here>"):
        text = text.replace(placeholder, extender_url)
    result = import_configuration(Source("recorded.yaml", text))
    if result.converted is None:
        raise ValueError(f"the configuration cannot be converted: {result.diagnostics}")
    rules, settings = folder / "recorded.kdsl", folder / "recorded.config.yaml"
    rules.write_text(result.converted.text, encoding="utf-8")
    settings.write_text(result.converted.settings_text(rules.name), encoding="utf-8")
    return settings


def _without_connection(config: Json) -> Json:
    """Return a configuration without what `kdsl run` has options for."""
    return {key: each for key, each in config.items() if key not in ("clientConnection", "leaderElection")}


def _lease(election: Json) -> LeaseOptions | None:
    if not election.get("leaderElect"):
        return None

    def seconds(name: str, default: float) -> float:
        value: Any = election.get(name)
        return default if value is None else float(str(value).removesuffix("s"))

    return LeaseOptions(
        name=LEASE,
        duration=seconds("leaseDuration", 15),
        deadline=seconds("renewDeadline", 10),
        retry=seconds("retryPeriod", 2),
    )

"""The whole scheduler process against a sandbox, over HTTP and in real time: what scenarios are played in.

Tests act on the cluster through the API of the sandbox without a connection, so that a partition or a fault
concerns the scheduler alone, and so that the recorder holds nothing but the scheduler's requests.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import uvloop
from kdsl.app import Settings, build_scheduler, check_rules, shipped_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.hooks.context import PluginContext
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.election.leader import LeaseOptions
from kdsl.live.options import RunOptions, ServingOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.services import Service
from kdsl.reload import Reloaded, Sources
from kdsl.sandbox import RecordedRequest, Sandbox, SandboxOptions
from kdsl.sandbox.model.resources import PODS, RESOURCES, Resource, named
from kdsl.sandbox.requests.tokens import ADMIN

from tests.conformance.live.http_client import Answer, Client

PROFILE: Final = "kubernetes.v1_36.default"
SHORT_LEASE: Final = LeaseOptions(duration=3, deadline=2, retry=0.5)
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
PATIENCE: Final = 20.0
"""The shortest time limit in seconds. It is counted in turns of the event loop: a busy machine has fewer."""
_TURN: Final = 0.004
_END_WITHIN: Final = 60.0
"""Seconds for the end of all schedulers of a scenario."""

Json = dict[str, Any]
Scenario = Callable[["World"], Coroutine[Any, Any, None]]


def kind(plural: str) -> Resource:
    """Return the resource of a plural name that only one group has, or that the core group has."""
    return min((each for each in RESOURCES if each.plural == plural), key=lambda each: each.group)


@cache
def shipped() -> RuleSet:
    """The shipped rules, checked once: that takes longer than most scenarios."""
    rules = check_rules((shipped_rules(),)).rules
    assert rules is not None
    return rules


class ShippedSources(Sources):
    """The default profile of the shipped rules, without reading them for each process."""

    def load(self, context: PluginContext) -> Reloaded:
        return Reloaded(build_scheduler(shipped(), context, Settings(profiles=(PROFILE,))), ())


@dataclass
class Instance:
    """A scheduler process that runs, and how it ends."""

    process: SchedulerProcess
    task: asyncio.Task[None]

    @property
    def is_ready(self) -> bool:
        return hasattr(self.process, "watches") and self.process.watches.is_ready

    @property
    def leads(self) -> bool:
        leader = getattr(self.process, "leader", None)
        return leader is not None and leader.is_leader

    async def stop(self, within: float = 6) -> None:
        """End it as SIGTERM does."""
        self.process.stop()
        async with asyncio.timeout(max(within, PATIENCE)):
            await self.task


@dataclass
class World:
    """A sandbox and the schedulers that run against it."""

    sandbox: Sandbox
    folder: Path
    instances: list[Instance] = field(default_factory=list)

    # ---- schedulers --------------------------------------------------------------------------------------

    def begin(self, service: Service | None = None, **options: Any) -> Instance:
        """Start a scheduler without waiting for anything; `service` is served beside its endpoints."""
        number = len(self.instances)
        given: Json = {
            "host": f"host-{number}",
            "instance": f"i{number}",
            "sources": ShippedSources(),
            "access": self.access(),
            "lease": None,
            "serving": None,
            "reload_every": 0.05,
            "drain": 1.0,
            **options,
        }
        process = SchedulerProcess(RunOptions(**given), Random(number), service)
        instance = Instance(process, asyncio.create_task(process.run(), name=given["host"]))
        self.instances.append(instance)
        return instance

    async def start(self, service: Service | None = None, **options: Any) -> Instance:
        """Start a scheduler and wait until it knows the cluster."""
        instance = self.begin(service, **options)
        await self.until(lambda: instance.is_ready or instance.task.done(), 10)
        assert instance.is_ready, instance.task.exception()
        return instance

    @property
    def first(self) -> Instance:
        return self.instances[0]

    def access(self, user: str = "") -> AccessOptions:
        """Return the way to the sandbox of one of its users, by default the administrator."""
        path = self.folder / f"kubeconfig-{len(list(self.folder.iterdir()))}"
        path.write_text(self.sandbox.kubeconfig)
        return AccessOptions(path, f"kdsl-sandbox-{user}" if user else None, environment={})

    # ---- the cluster -------------------------------------------------------------------------------------

    async def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Json:
        """Have the API carry a request out, past all faults; ApiError where it refuses."""
        data = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": media, "accept": "application/json"}
        reply = await self.sandbox.api.answer(ADMIN, method, path, b"", headers, data)
        found: Json = msgspec.json.decode(reply.body)
        return found

    async def node(self, name: str = "n1", cpu: str = "4", **spec: Any) -> Json:
        """Create a node."""
        room = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        status = {"capacity": room, "allocatable": room}
        body = {"metadata": {"name": name}, "spec": spec, "status": status}
        return await self.send("POST", "/api/v1/nodes", body)

    async def nodes(self, count: int, cpu: str = "4") -> None:
        """Create nodes n1, n2 and so on."""
        for number in range(1, count + 1):
            await self.node(f"n{number}", cpu)

    async def pod(self, name: str = "a", cpu: str = "100m", labels: Json | None = None, **spec: Any) -> Json:
        """Create a pod."""
        container = {"name": "c", "image": "img:1", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [container], **spec},
        }
        return await self.send("POST", "/api/v1/namespaces/default/pods", body)

    async def delete(self, name: str, *, at_once: bool = True) -> None:
        """Delete a pod: gone at once, or in its grace period."""
        body = {"gracePeriodSeconds": 0} if at_once else {}
        await self.send("DELETE", f"/api/v1/namespaces/default/pods/{name}", body)

    async def bind(self, name: str, node: str) -> None:
        """Bind a pod as somebody else does."""
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await self.send("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)

    async def patch(self, path: str, body: Json, media: str = MERGE) -> None:
        """Patch an object."""
        await self.send("PATCH", path, body, media)

    async def patch_node(self, name: str, body: Json, *, status: bool = False) -> None:
        """Patch a node, or its status."""
        await self.patch(f"/api/v1/nodes/{name}{'/status' if status else ''}", body)

    # ---- what is there -----------------------------------------------------------------------------------

    def get(self, name: str, resource: Resource = PODS, namespace: str = "default") -> Json | None:
        """Return an object as the server has it; None where there is none."""
        version = self.sandbox.store.get(resource, (namespace if resource.is_namespaced else "", name))
        return None if version is None else version.body()

    def at(self, name: str) -> str:
        """Return the node of a pod; empty where it has none."""
        found = self.get(name)
        return found["spec"].get("nodeName", "") if found else ""

    def bound(self, *names: str) -> bool:
        """Return whether all pods are bound."""
        return all(self.at(name) for name in names)

    def condition(self, name: str, kind: str = "PodScheduled") -> Json:
        """Return a condition of a pod; empty where it has none."""
        status = (self.get(name) or {}).get("status", {})
        return next((each for each in status.get("conditions") or () if each["type"] == kind), {})

    def nominated(self, name: str) -> str:
        """Return the node that a pod is promised."""
        found = self.get(name) or {}
        return str(found.get("status", {}).get("nominatedNodeName") or "")

    def events(self, reason: str = "*", about: str = "") -> list[Json]:
        """Return the events there are, in the form of core/v1, of a reason and about an object."""
        found = list(self.sandbox.store.bodies(named("events")))
        return [
            each
            for each in found
            if reason in ("*", each.get("reason")) and (not about or each["involvedObject"]["name"] == about)
        ]

    # ---- what was asked of the server --------------------------------------------------------------------

    def requests(self, method: str = "*", path: str = "*", since: float = 0) -> list[RecordedRequest]:
        """Return the scheduler's requests, oldest first."""
        return [each for each in self.sandbox.recorder.matching(method, path) if each.at >= since]

    def bindings(self, name: str = "*") -> list[RecordedRequest]:
        """Return the bindings of pods that were asked for."""
        return self.requests("POST", f"*/pods/{name}/binding")

    def patches(self, name: str = "*") -> list[Json]:
        """Return the patches of pods' status that were asked for."""
        return [each.document for each in self.requests("PATCH", f"*/pods/{name}/status")]

    # ---- waiting -----------------------------------------------------------------------------------------

    async def until(self, check: Callable[[], object], seconds: float = 5) -> None:
        """Wait until `check` holds, for at most `seconds` (or PATIENCE) on an idle machine; AssertionError after.

        The limit is a number of turns of the event loop, because the threads of this process get as little
        time as the loop while other processes keep the machine busy.
        """
        turns = int(max(seconds, PATIENCE) / _TURN)
        while not check():
            for each in self.instances:
                if each.task.done() and not each.task.cancelled() and each.task.exception() is not None:
                    each.task.result()
            assert turns, f"not within {seconds} s"
            turns -= 1
            await asyncio.sleep(_TURN)

    async def while_(self, check: Callable[[], object], seconds: float) -> None:
        """See that something holds all the time."""
        end = self.now + seconds
        while self.now < end:
            assert check()
            await asyncio.sleep(_TURN)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def settled_for(self, *resources: str) -> None:
        """Wait until the schedulers have handled what they were sent of some resources."""
        for each in self.instances:
            if each.task.done():
                continue
            watches, inbox = each.process.watches, each.process.inbox
            wanted = {name: len(self.sandbox.store.collection(kind(name)).items) for name in resources}

            def knows(watches=watches, inbox=inbox, wanted=wanted) -> bool:  # type: ignore[no-untyped-def]
                health = {one.resource.split(".")[0]: one for one in watches.health}
                return not inbox.backlog and all(health[name].objects == wanted[name] for name in wanted)

            await self.until(knows)
            await asyncio.sleep(0.02)

    async def settled(self) -> None:
        """Wait until the schedulers have handled what the server knew at the time of the call.

        A pod that is created now and bound tells that everything before it was seen and decided.
        """
        name = f"probe-{self.sandbox.store.number}"
        await self.pod(name, "0")
        await self.until(lambda: self.bound(name))
        await self.delete(name)


async def get(port: int, path: str, token: str = "") -> Answer:
    """Read a page of a scheduler's endpoints."""
    client = Client(f"https://127.0.0.1:{port}", b"")
    client._tls = ssl.create_default_context()
    client._tls.check_hostname, client._tls.verify_mode = False, ssl.CERT_NONE
    try:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return await client.request("GET", path, {}, headers, None)
    finally:
        await client.close()


SERVING: Final = ServingOptions("127.0.0.1", 0)
"""Endpoints on any free port."""


@asynccontextmanager
async def empty_world(**options: Any) -> AsyncIterator[World]:
    """Run a sandbox without a scheduler; schedulers that are started in it are stopped at its end."""
    with TemporaryDirectory(prefix="kdsl-scenario-") as folder:
        async with Sandbox(SandboxOptions(seed=1, **options)) as sandbox:
            world = World(sandbox, Path(folder))
            try:
                yield world
            finally:
                sandbox.faults.clear()
                for each in world.instances:
                    each.process.stop()
                async with asyncio.timeout(_END_WITHIN):
                    await asyncio.gather(*(each.task for each in world.instances), return_exceptions=True)


def play(scenario: Scenario, **options: Any) -> None:
    """Play a scenario in a sandbox without a scheduler."""

    async def run() -> None:
        async with empty_world(**options) as world:
            await scenario(world)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def live(scenario: Scenario, *, nodes: Sequence[str] = ("4",), **options: Any) -> None:
    """Play a scenario with nodes of so many processors and one scheduler that has begun."""

    async def begin(world: World) -> None:
        for number, cpu in enumerate(nodes, 1):
            await world.node(f"n{number}", cpu)
        await world.start(**options)
        await scenario(world)

    play(begin)

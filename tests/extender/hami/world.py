"""HAMi's place in a sandbox: an API server, the extender that answers calls, and who makes them."""

from __future__ import annotations

import asyncio
import json
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from kdsl.app import Scheduler, Settings, build_scheduler, devices_in_use
from kdsl.check.model import RuleSet
from kdsl.extender import protocol
from kdsl.extender.hami.behaviour import HamiBehaviour
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.surroundings import Surroundings
from kdsl.extender.ports import RefusedError
from kdsl.hooks.context import PluginContext
from kdsl.live.access import AccessOptions
from kdsl.live.asking import ask
from kdsl.live.assembly import LiveOptions, LiveScheduler
from kdsl.live.connection import Connection
from kdsl.live.inbox import Inbox
from kdsl.live.loop import Gates
from kdsl.live.needs import needs
from kdsl.live.watches import Watches
from kdsl.sandbox import Sandbox, SandboxOptions
from kdsl.sandbox.json_patch import apply_json_patch

from tests.sandbox.talk import MERGE, PODS, Talk, eventually

Json = dict[str, Any]
NODES = "/api/v1/nodes"


class Extender:
    """One process in HAMi's place. `start` waits until it knows the cluster; `stop` ends it without ado."""

    def __init__(self, kubeconfig: Path, rules: RuleSet, settings: Settings, options: HamiOptions) -> None:
        self._kubeconfig, self._rules, self._settings = kubeconfig, rules, settings
        self._options = options
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._connection = connection = await Connection.open(AccessOptions(self._kubeconfig))
        inbox = Inbox()
        watches = Watches(connection.client(part="watch"), connection.probe, inbox, Random(1))

        def make(context: PluginContext) -> Scheduler:
            self._made = build_scheduler(self._rules, context, self._settings)
            return self._made

        self.live = live = LiveScheduler(
            make, inbox, connection.client(), Gates(leads=lambda: False), LiveOptions("host")
        )
        surroundings = Surroundings(live, partial(ask, inbox), lambda: watches.is_ready)
        self.behaviour = HamiBehaviour(surroundings, self._made, self._options)
        schedulers = {table.scheduler for table in self._made.tables}
        devices = devices_in_use(self._rules, self._settings, schedulers)
        assert devices is not None
        live.handshakes._leads = lambda: True
        live.handshakes.use(devices.stock)
        watches.follow(needs(self._rules, self._made.tables))
        self._tasks = [asyncio.create_task(watches.run())]
        await live.start()
        await self.behaviour.start()

        async def is_ready() -> bool:
            return watches.is_ready

        await eventually(is_ready, 30)

    async def stop(self) -> None:
        await self.behaviour.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.live.stop(0.0)
        self._connection.close()

    # ---- calls -------------------------------------------------------------------------------------------

    async def filter(self, pod: Json, nodes: list[str]) -> Json:
        body = {"Pod": pod, "Nodes": None, "NodeNames": nodes}
        return await self._call(protocol.read_args, self.behaviour.filter, body)

    async def bind(self, pod: Json, node: str) -> str:
        meta = pod["metadata"]
        body = {
            "PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node,
        }  # fmt: skip
        answer = await self._call(protocol.read_binding, self.behaviour.bind, body)
        return str(answer.get("Error", ""))

    async def review(self, pod: Json, version: str = "v1") -> Json:
        """Ask the webhook about a pod that is made; return its `response`."""
        request = {
            "uid": "r-1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
            "namespace": pod["metadata"].get("namespace", "default"), "object": pod,
        }  # fmt: skip
        body = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        answer = await self._call(protocol.read_review, self.behaviour.admit, body)
        found: Json = answer["response"]
        return found

    async def _call(self, read: Callable[[bytes], Any], verb: Callable[[Any], Any], body: Json) -> Json:
        try:
            answer = await verb(read(json.dumps(body).encode()))
        except RefusedError as error:
            return {"Error": str(error)}
        found: Json = json.loads(protocol.write(answer))
        return found


class Cluster:
    """The API server, and what a cluster's other parts do to it."""

    def __init__(self, sandbox: Sandbox, talk: Talk, folder: Path) -> None:
        self.sandbox, self.talk = sandbox, talk
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(sandbox.kubeconfig)

    async def node(self, node: Json) -> None:
        """Add a node, with its status."""
        await self._done("POST", NODES, node)

    async def annotate_node(self, name: str, annotations: dict[str, str | None]) -> None:
        """Write annotations of a node; None removes one."""
        await self._done("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": annotations}}, MERGE)

    async def annotate(self, name: str, annotations: dict[str, str | None]) -> Json:
        """Write annotations of a pod; None removes one."""
        return await self._done("PATCH", f"{PODS}/{name}", {"metadata": {"annotations": annotations}}, MERGE)

    async def create(self, pod: Json) -> Json:
        """Make a pod that has been admitted; return it as the server has it."""
        return await self._done("POST", PODS, pod)

    async def delete(self, name: str) -> None:
        """Delete a pod at once."""
        await self._done("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        """Have a pod run to its end."""
        body = {"status": {"phase": phase}}
        await self._done("PATCH", f"{PODS}/{name}/status", body, MERGE)

    async def pod(self, name: str) -> Json:
        return await self._done("GET", f"{PODS}/{name}")

    async def annotations(self, node: str) -> Json:
        """Return the annotations of a node."""
        found = await self._done("GET", f"{NODES}/{node}")
        return dict(found["metadata"].get("annotations") or {})

    async def events(self, reason: str) -> list[Json]:
        found = await self._done("GET", "/api/v1/namespaces/default/events")
        return [each for each in found["items"] if each["reason"] == reason]

    async def _done(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Json:
        status, answer = await self.talk(method, path, body, media)
        assert status < 300, f"{method} {path}: {status} {answer}"
        found: Json = answer
        return found


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Run a sandbox."""
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(Sandbox(SandboxOptions(seed=1)))
        talk = Talk(sandbox)
        stack.push_async_callback(talk.close)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kdsl-hami-"))
        yield Cluster(sandbox, talk, Path(folder))


def patched(pod: Json, response: Json) -> Json:
    """Return a pod as the webhook's answer makes it."""
    assert response["allowed"], response
    patch = response.get("patch")
    return pod if patch is None else apply_json_patch(pod, json.loads(b64decode(patch)))

"""HAMi's place in a sandbox: an API server, the extender's process, and who calls it over HTTP."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from kdsl.app import Settings, build_scheduler
from kdsl.check.model.rule_set import RuleSet
from kdsl.extender.behaviours import BehaviourKind
from kdsl.extender.hami.behaviour import HamiBehaviour
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.service import ExtenderOptions, ExtenderService
from kdsl.hooks.context import PluginContext
from kdsl.live.services import Host
from kdsl.reload import Reloaded, Sources
from kdsl.sandbox.faults import Faults, LoseRequest
from kdsl.sandbox.formats.json_patch import apply_json_patch
from kdsl.sandbox.model.errors import ApiError

from tests.extender.site import PLAIN, read_reply
from tests.live.scenarios.world import Instance, World, empty_world

Json = dict[str, Any]
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
FINISHED = ("Succeeded", "Failed")


class Given(Sources):
    """Rules that were checked before: that takes longer than most tests."""

    def __init__(self, rules: RuleSet, settings: Settings) -> None:
        super().__init__()
        object.__setattr__(self, "given", (rules, settings))

    def load(self, context: PluginContext) -> Reloaded:
        rules, settings = object.__getattribute__(self, "given")
        return Reloaded(build_scheduler(rules, context, settings), ())


class Extender:
    """One process in HAMi's place, called over loopback. `stop` ends it as SIGTERM does."""

    def __init__(self, instance: Instance, behaviour: HamiBehaviour) -> None:
        self.instance, self.behaviour = instance, behaviour
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def stop(self) -> None:
        await self.hang_up()
        await self.instance.stop()

    async def kill(self, faults: Faults) -> None:
        """End it in the middle of whatever it does: nothing that it writes arrives from now on."""
        lost = faults.always(lambda request: request.method != "GET", LoseRequest())
        await self.stop()
        faults.remove(lost)

    async def knows(self, nodes: dict[str, Json], pods: dict[str, Json]) -> bool:
        """Return whether the extender knows these objects and no others."""
        process = self.instance.process

        def look() -> bool:
            known = process.scheduler.known
            seen_nodes = {each.facts.name: each.version for each in known.nodes()}
            seen_pods = {each.info.key: each.version for each in (*known.pending(), *known.placed())}
            return seen_nodes == _versions(nodes) and seen_pods == _versions(pods)

        return await process.ask(look)

    async def recorded(self) -> None:
        """Wait until all events are written."""
        recorder = self.instance.process.scheduler._writers.plain_recorder
        while not recorder.is_idle:
            await asyncio.sleep(0.001)

    # ---- calls -------------------------------------------------------------------------------------------

    async def filter(self, pod: Json, nodes: list[str]) -> Json:
        """Ask which nodes will do."""
        return await self.call("filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})

    async def bind(self, pod: Json, node: str) -> str:
        """Have a pod bound; return why it is not, empty where it is."""
        meta = pod["metadata"]
        body = {
            "PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node,
        }  # fmt: skip
        return str((await self.call("bind", body)).get("Error", ""))

    async def review(self, pod: Json, version: str = "v1", namespace: str = "") -> Json:
        """Ask the webhook about a pod that is made, perhaps in another namespace; return its `response`."""
        request = {
            "uid": "r-1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE",
            "namespace": namespace or pod["metadata"].get("namespace", "default"), "object": pod,
        }  # fmt: skip
        body = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        found: Json = (await self.call("webhook", body))["response"]
        return found

    async def call(self, verb: str, body: Json) -> Json:
        """Call a verb, on one connection after the other as kube-scheduler does."""
        if self._connection is None:
            endpoints = self.instance.process.endpoints
            assert endpoints is not None
            self._connection = await asyncio.open_connection("127.0.0.1", endpoints.port)
        reader, writer = self._connection
        data = msgspec.json.encode(body)
        head = [f"POST /{verb} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head += [f"Content-Length: {len(data)}", "", ""]
        writer.write("\r\n".join(head).encode() + data)
        reply = await read_reply(reader)
        assert reply.status == 200, reply
        found: Json = reply.json
        return found

    async def hang_up(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


class Cluster:
    """The API server, and what a cluster's other parts do to it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.extenders: list[Extender] = []

    async def extender(
        self, rules: RuleSet, settings: Settings, options: HamiOptions | None = None
    ) -> Extender:
        """Start an extender, and wait until it knows the cluster."""
        made: list[HamiBehaviour] = []

        def make(host: Host) -> HamiBehaviour:
            made.append(HamiBehaviour(host, options or HamiOptions()))
            return made[0]

        service = ExtenderService(ExtenderOptions(), BehaviourKind(make))
        sources = Given(rules, settings)
        instance = await self.world.start(service, sources=sources, serving=PLAIN, advises=True)
        self.extenders.append(Extender(instance, made[0]))
        return self.extenders[-1]

    # ---- nodes -------------------------------------------------------------------------------------------

    async def annotate_node(self, name: str, annotations: dict[str, str | None]) -> None:
        """Write annotations of a node; None removes one."""
        await self.patch(f"{NODES}/{name}", {"metadata": {"annotations": annotations}})

    async def annotations(self, node: str) -> Json:
        """Return the annotations of a node."""
        return dict((await self.get(f"{NODES}/{node}"))["metadata"].get("annotations") or {})

    # ---- pods --------------------------------------------------------------------------------------------

    async def create(self, pod: Json) -> Json:
        """Make a pod that has been admitted; return it as the server has it."""
        return await self.post(f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods", pod)

    async def pod(self, name: str) -> Json:
        return await self.get(f"{PODS}/{name}")

    async def annotate(self, name: str, annotations: dict[str, str | None]) -> Json:
        """Write annotations of a pod; None removes one."""
        return await self.patch(f"{PODS}/{name}", {"metadata": {"annotations": annotations}})

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        """Have a pod run to its end."""
        await self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})

    def events(self, reason: str) -> list[Json]:
        """Return the events of a reason."""
        return self.world.events(reason)

    # ---- any object --------------------------------------------------------------------------------------

    async def get(self, path: str) -> Json:
        return await self.world.send("GET", path)

    async def post(self, path: str, body: Json, *, or_exists: bool = False) -> Json:
        """Make an object; `or_exists`: it may be there already."""
        try:
            return await self.world.send("POST", path, body)
        except ApiError as error:
            if or_exists and error.code == 409:
                return {}
            raise

    async def patch(self, path: str, body: Json) -> Json:
        await self.world.patch(path, body)
        return await self.get(path.removesuffix("/status"))

    async def remove(self, path: str) -> None:
        """Delete an object at once."""
        await self.world.send("DELETE", path, {"gracePeriodSeconds": 0})

    async def seen_by(self, extender: Extender) -> None:
        """Wait until an extender has taken in all nodes and pods as they are now, finished ones aside."""
        async with asyncio.timeout(20):
            # Others write as well, handshakes for one: what is there is looked at again and again.
            while not await self._is_seen_by(extender):
                await asyncio.sleep(0.001)

    async def _is_seen_by(self, extender: Extender) -> bool:
        nodes = {each["metadata"]["name"]: each for each in (await self.get(NODES))["items"]}
        listed = (await self.get("/api/v1/pods"))["items"]
        pods = {_key(each): each for each in listed if each["status"].get("phase") not in FINISHED}
        return await extender.knows(nodes, pods)


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Run a sandbox; extenders that are started in it end with it."""
    async with empty_world() as world:
        found = Cluster(world)
        try:
            yield found
        finally:
            for extender in found.extenders:
                await extender.hang_up()


def patched(pod: Json, response: Json) -> Json:
    """Return a pod as the webhook's answer makes it."""
    assert response["allowed"], response
    patch = response.get("patch")
    return pod if patch is None else apply_json_patch(pod, json.loads(b64decode(patch)))


def _key(thing: Json) -> str:
    return f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"


def _versions(things: dict[str, Json]) -> dict[str, str]:
    return {key: thing["metadata"]["resourceVersion"] for key, thing in things.items()}

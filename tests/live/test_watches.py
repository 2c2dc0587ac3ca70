"""All watches together: readiness, what is followed, and memory that is given back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.http.messages import HttpAnswer, HttpRequest
from kdsl.live.watching.changes import ObjectChange
from kdsl.live.watching.inbox import Inbox
from kdsl.live.watching.needs import Need, Needs
from kdsl.live.watching.resources import RESOURCES
from kdsl.live.watching.watches import Watches

from tests.live.fake_api import FakeApi, FakeStream, answer, status
from tests.live.following import SilentObserver
from tests.live.scripted_server import CERTIFICATES, STREAM, Asked, chunk, server_context, serving
from tests.live.virtual import run


class Cluster:
    """A fake server of several resources."""

    def __init__(self, *plurals: str) -> None:
        self.apis = {plural: FakeApi(plural) for plural in plurals}

    def _api(self, request: HttpRequest) -> FakeApi:
        return self.apis[request.path.rpartition("/")[2]]

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        return await self._api(request).send(request)

    async def open_lines(self, request: HttpRequest, *, timeout: float) -> HttpAnswer | FakeStream:
        return await self._api(request).open_lines(request, timeout=timeout)

    async def probe(self) -> bool:
        return True


class Watched(SilentObserver):
    """Keeps what is told of resources: a number for whether they are watched, none without a watch."""

    def __init__(self) -> None:
        self.resources: dict[str, bool] = {}

    def synced(self, resource: str, is_synced: bool) -> None:
        self.resources[resource] = is_synced

    def not_watched(self, resource: str) -> None:
        self.resources.pop(resource, None)


def needs_of(*plurals: str, keeps_raw: bool = False) -> Needs:
    return Needs(tuple(Need(RESOURCES[plural], ("a test",)) for plural in plurals), keeps_raw)


@asynccontextmanager
async def watching(
    cluster: Cluster, needs: Needs, observer: Watched | None = None
) -> AsyncIterator[tuple[Watches, Inbox]]:
    inbox = Inbox()
    watches = Watches(cluster, cluster.probe, inbox, Random(0), observer or SilentObserver())
    watches.follow(needs)
    task = asyncio.create_task(watches.run())
    try:
        yield watches, inbox
    finally:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


def taken(inbox: Inbox) -> list[str]:
    return [f"{each.verb} {each.resource} {each.key}" for each in taken_whole(inbox)]


def taken_whole(inbox: Inbox) -> list[ObjectChange]:
    return inbox.take(1000, timeout=0)[1]


def test_ready_is_when_the_scheduling_thread_has_handled_what_there_was() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes", "namespaces")
        cluster.apis["nodes"].put("n1")
        async with watching(cluster, needs_of("nodes", "namespaces")) as (watches, inbox):
            assert not watches.is_ready
            await asyncio.sleep(1)
            assert [each.is_synced for each in watches.health] == [False, True], "one node waits in the inbox"
            assert taken(inbox) == ["put nodes n1"]
            assert not watches.is_ready, "it was taken, and may be at work"
            inbox.take(1, timeout=0)
            assert watches.is_ready

    run(scenario())


def test_one_resource_without_rights_is_named_and_the_others_go_on() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes", "namespaces", "csinodes")
        cluster.apis["namespaces"].answers = [answer(403, status(403, "no rights"))] * 1000
        cluster.apis["csinodes"].answers = [answer(404, status(404, "not found"))] * 1000
        cluster.apis["nodes"].put("n1")
        async with watching(cluster, needs_of("nodes", "namespaces", "csinodes")) as (watches, inbox):
            await asyncio.sleep(100)
            assert taken(inbox) == ["put nodes n1"]
            inbox.take(1, timeout=0)
            unready = {each.resource: each.error for each in watches.health if not each.is_ready}
            assert unready == {"namespaces": "forbidden: no rights"} and not watches.is_ready
            assert next(each for each in watches.health if each.resource == "csinodes").is_absent

    run(scenario())


def test_nodes_cannot_be_absent() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes")
        cluster.apis["nodes"].answers = [answer(404, status(404, "not found"))] * 1000
        async with watching(cluster, needs_of("nodes")) as (watches, _):
            await asyncio.sleep(100)
            assert not watches.is_ready and not watches.health[0].is_absent

    run(scenario())


def test_silence_about_nodes_is_found_out_within_a_minute() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes")
        nodes = cluster.apis["nodes"]
        async with watching(cluster, needs_of("nodes")) as (_, inbox):
            await asyncio.sleep(100)
            nodes.freeze()
            nodes.put("n1")
            await asyncio.sleep(56)
            assert taken(inbox) == ["put nodes n1"]
            assert nodes.kinds.count("watchlist") == 1, "nothing is listed again"

    run(scenario())


def test_what_is_not_needed_any_more_is_dropped() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes", "namespaces", "services")
        for api in cluster.apis.values():
            api.put("x")
        async with watching(cluster, needs_of("nodes", "namespaces")) as (watches, inbox):
            await asyncio.sleep(1)
            assert sorted(taken(inbox)) == ["put namespaces x", "put nodes x"]
            watches.follow(needs_of("nodes", "services"))
            await asyncio.sleep(1)
            assert sorted(taken(inbox)) == ["drop namespaces x", "put services /x"]
            cluster.apis["namespaces"].put("y")
            cluster.apis["nodes"].put("y")
            await asyncio.sleep(1)
            assert taken(inbox) == ["put nodes y"]
            assert not cluster.apis["namespaces"].streams

    run(scenario())


def test_a_resource_that_is_not_watched_is_not_reported_as_silent() -> None:
    async def scenario() -> None:
        cluster, told = Cluster("nodes", "services", "csinodes"), Watched()
        cluster.apis["csinodes"].answers = [answer(404, status(404, "not found"))] * 1000
        async with watching(cluster, needs_of("nodes", "services", "csinodes"), told) as (watches, _):
            await asyncio.sleep(5)
            assert told.resources == {"nodes": True, "services": True}
            watches.follow(needs_of("nodes"))
            await asyncio.sleep(5)
            assert told.resources == {"nodes": True}

    run(scenario())


def test_no_thread_sees_half_of_a_change_of_what_is_watched() -> None:
    seen: list[bool] = []

    class Looking(Watched):
        def not_watched(self, resource: str) -> None:
            seen.append(watches.is_ready)  # as the scheduling thread may at any time

    async def scenario() -> None:
        nonlocal watches
        cluster = Cluster("nodes", "namespaces", "services")
        cluster.apis["namespaces"].answers = [answer(403, status(403, "no rights"))] * 1000
        async with watching(cluster, needs_of("nodes", "namespaces"), Looking()) as (watches, _):
            await asyncio.sleep(5)
            watches.follow(needs_of("nodes", "services"))
            assert seen == [False] and not watches.is_ready
            await asyncio.sleep(5)
            assert watches.is_ready

    watches: Watches
    run(scenario())


def test_texts_that_are_needed_later_come_with_each_object_once_more() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes")
        nodes = cluster.apis["nodes"]
        nodes.put("a")
        nodes.put("b")
        async with watching(cluster, needs_of("nodes")) as (watches, inbox):
            await asyncio.sleep(1)
            assert [change.raw for change in taken_whole(inbox)] == [b"", b""]
            nodes.delete("b")
            watches.follow(needs_of("nodes", keeps_raw=True))
            await asyncio.sleep(1)
            changes = taken_whole(inbox)
            assert [f"{each.verb} {each.key}" for each in changes] == ["drop b", "put a"]
            assert b'"name": "a"' in changes[1].raw

    run(scenario())


def test_what_comes_into_use_is_watched_beside_what_is_needed() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes", "services")
        for api in cluster.apis.values():
            api.put("a")
        needed, coming = needs_of("nodes"), needs_of("nodes", "services", keeps_raw=True)

        def state() -> tuple[bool, list[tuple[str, bool]]]:
            return watches.is_ready, [(each.resource, each.is_ready) for each in watches.coming]

        async with watching(cluster, needed) as (watches, inbox):
            await asyncio.sleep(1)
            inbox.take(9, timeout=0)
            inbox.take(9, timeout=0)
            watches.follow(needed, coming)
            assert state() == (True, [("nodes", False), ("services", False)])
            await asyncio.sleep(1)
            assert all(change.raw for change in taken_whole(inbox))
            assert state() == (True, [("nodes", False), ("services", False)])
            inbox.take(9, timeout=0)
            assert state() == (True, [("services", True)])
            watches.follow(coming)
            assert state() == (True, [])

        # Without rules that decide meanwhile nothing is ready before the JSON is there.
        async with watching(cluster, needed) as (watches, inbox):
            await asyncio.sleep(1)
            inbox.take(9, timeout=0)
            inbox.take(9, timeout=0)
            watches.follow(needs_of("nodes", keeps_raw=True))
            assert state() == (False, [])
            await asyncio.sleep(1)
            inbox.take(9, timeout=0)
            inbox.take(9, timeout=0)
            assert state() == (True, [])

    run(scenario())


def test_a_full_inbox_stops_the_reading_and_loses_nothing() -> None:
    async def scenario() -> None:
        cluster = Cluster("nodes")
        nodes = cluster.apis["nodes"]
        inbox = Inbox(capacity=10)
        watches = Watches(cluster, cluster.probe, inbox, Random(0), SilentObserver())
        watches.follow(needs_of("nodes"))
        task = asyncio.create_task(watches.run())
        for number in range(100):
            nodes.put(f"n{number}")
        seen: list[str] = []
        while len(seen) < 100:
            await asyncio.sleep(1)
            assert inbox.backlog <= 10
            seen += [change.key for change in inbox.take(7, timeout=0)[1]]
        assert seen == [f"n{number}" for number in range(100)]
        task.cancel()
        await asyncio.wait((task,))

    run(scenario())


def test_over_a_real_connection(tmp_path: Path) -> None:
    """A watch over TLS reaches another thread; it is cut, and goes on."""
    node = {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "7"}}
    other = {"metadata": {"name": "n2", "uid": "v", "resourceVersion": "9"}}
    ends = {"metadata": {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}}

    async def nodes(asked: Asked, writer: asyncio.StreamWriter) -> None:
        begins = "sendInitialEvents" in asked.target
        frames = [("ADDED", node), ("BOOKMARK", ends)] if begins else [("ADDED", other)]
        lines = [json.dumps({"type": kind, "object": thing}).encode() + b"\n" for kind, thing in frames]
        writer.write(STREAM + b"".join(map(chunk, lines)))
        await writer.drain()
        if begins:
            writer.close()

    async def scenario() -> None:
        async with serving(nodes, server_context()) as server:
            cluster = {
                "server": f"https://localhost:{server.port}",
                "certificate-authority": str(CERTIFICATES / "ca.crt"),
            }
            contexts = [{"name": "c", "context": {"cluster": "c"}}]
            path = tmp_path / "config"
            clusters = [{"name": "c", "cluster": cluster}]
            path.write_text(json.dumps({"current-context": "c", "contexts": contexts, "clusters": clusters}))
            connection = await Connection.open(AccessOptions(path, environment={}))
            inbox = Inbox()
            watches = Watches(connection.client(), connection.probe, inbox, Random(0), SilentObserver())
            watches.follow(needs_of("nodes"))
            task = asyncio.create_task(watches.run())
            keys: list[str] = []
            while len(keys) < 2:
                keys += [each.key for each in (await asyncio.to_thread(inbox.take, 10, 5))[1]]
            assert keys == ["n1", "n2"]
            assert [("resourceVersion=8" in each.target) for each in server.asked] == [False, True], (
                "no list again"
            )
            task.cancel()
            await asyncio.wait((task,))
            connection.close()

    asyncio.run(scenario())

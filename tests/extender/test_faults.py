"""An extender without the API server, a right or a watch: it survives, reports the fault, and recovers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kdsl.extender import binding
from kdsl.live.options import ServingOptions
from kdsl.reload import Sources

from tests.extender.site import PLAIN, RULES, Site
from tests.extender.test_extender import known, play
from tests.live.scenarios.world import PATIENCE


async def until_answered(here: Site, pod: dict[str, Any], *names: str) -> Any:
    """Call filter until it is answered 200; each answer before must ask to come again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            reply = await here.call("filter", {"Pod": pod, "NodeNames": names})
            if reply.status == 200:
                return reply.json
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            await asyncio.sleep(0.05)


def test_without_an_api_server_it_answers_by_what_it_knew_and_binds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binding, "ANSWER_WITHIN", 0.5)

    async def scenario(here: Site) -> None:
        pod = await known(here)
        faults = here.world.sandbox.faults
        faults.partition()
        assert (await here.filter(pod, "n1", "n2"))["NodeNames"] == ["n2"]
        first = await here.bind(pod, "n2")
        assert first.status == 200 and first.json["Error"]
        assert not here.world.at("a")
        faults.heal()
        async with asyncio.timeout(PATIENCE):
            while (await here.bind(pod, "n2")).json:
                await asyncio.sleep(0.05)
        assert here.world.at("a") == "n2" and len(here.world.bindings()) == 1

    play(scenario)


def test_a_compaction_changes_no_answer() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        before = await here.filter(pod, "n1", "n2", "n3")
        here.world.sandbox.faults.forget_history()
        here.world.sandbox.faults.drop_watches()
        await here.world.node("n4")
        async with asyncio.timeout(PATIENCE):
            while (await here.filter(pod, "n4")).get("FailedNodes"):
                assert await here.filter(pod, "n1", "n2", "n3") == before
                await asyncio.sleep(0.02)
        assert await here.filter(pod, "n1", "n2", "n3") == before

    play(scenario)


def test_a_right_that_is_missing_is_named_and_nothing_is_answered_before_it_is_there() -> None:
    async def scenario(here: Site) -> None:
        world = here.world
        pod = await known(here)
        world.sandbox.faults.forbid("nodes")
        instance = world.begin(
            service := type(here.service)(here.service._options),
            sources=Sources(None, (RULES,), (), takes_all=True),
            serving=PLAIN,
            advises=True,
        )
        other = Site(world, instance, service)
        await world.until(lambda: instance.process.endpoints is not None and instance.process.endpoints.port)
        reply = await other.call("filter", {"Pod": pod, "NodeNames": ["n2"]})
        assert (reply.status, reply.json) == (503, {"Error": "the cluster is not known yet"})
        reply = await other.bind(pod, "n2")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        world.sandbox.faults.permit("nodes")
        assert await until_answered(other, pod, "n2") == {"NodeNames": ["n2"]}

    play(scenario)


def test_a_restart_knows_what_was_bound_before() -> None:
    async def scenario(here: Site) -> None:
        for name in ("b", "c"):
            assert (await here.bind(await known(here, name), "n2")).json == {}
        pod = await known(here)
        await here.instance.stop()
        service = type(here.service)(here.service._options)
        instance = await here.world.start(
            service, sources=Sources(None, (RULES,), (), takes_all=True), serving=PLAIN, advises=True
        )
        again = Site(here.world, instance, service)
        assert (await until_answered(again, pod, "n2", "n3"))["FailedNodes"] == {"n2": "node(s) had two pods"}

    play(scenario)


def test_a_node_that_goes_is_bound_to_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "ATTEMPTS", 2)

    async def scenario(here: Site) -> None:
        pod = await known(here)
        await here.world.send("DELETE", "/api/v1/nodes/n2")
        await here.world.settled_for("nodes")
        assert (await here.bind(pod, "n2")).json == {"Error": "node n2 is not known"}
        assert (await here.filter(pod, "n2", "n3"))["NodeNames"] == ["n3"]

    play(scenario)


def test_hostile_bodies_change_nothing() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        deep = b'{"Pod":' + b'{"spec":' * 20_000 + b"{}" + b"}" * 20_000 + b',"NodeNames":["n2"]}'
        labels = {f"k{number}": "v" * 60 for number in range(20_000)}
        odd = [
            deep,
            b'{"Pod":{"metadata":{"name":"a"},"spec":{"priority":99999999999999999999}},"NodeNames":["n2"]}',
            b'{"Pod":{"metadata":{"name":"a\\u0000\\ud800"},"spec":{}},"NodeNames":["n2"]}',
            {"Pod": {**pod, "metadata": {**pod["metadata"], "labels": labels}}, "NodeNames": ["n2"] * 50_000},
            {"Pod": pod, "NodeNames": ["../../n2", "", "n2\r\nX: y"]},
        ]
        for body in odd:
            reply = await here.call("filter", body)
            assert reply.status in (200, 400) and (reply.status == 200 or reply.json["Error"]), reply.status
        assert (await here.filter(pod, "n2"))["NodeNames"] == ["n2"]

    play(scenario)


def test_endpoints_without_tls_keep_their_guard() -> None:
    async def scenario(here: Site) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(b"GET /configz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
        writer.close()

    play(scenario, serving=ServingOptions("127.0.0.1", 0, tls=False))

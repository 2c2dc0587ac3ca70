"""The whole life of pods in HAMi's place, with an extender that ends and begins again at every step."""

from __future__ import annotations

import asyncio

import pytest

from tests.extender.hami.life import Life, play
from tests.extender.hami.vendors import PHASE, VENDORS, check_cards
from tests.extender.hami.world import Json, patched
from tests.extender.site import post

PODS_PER_CARD = {"nvidia": 1, "mig": 2, "ascend": 2, "acme": 1}


@pytest.mark.parametrize("name", VENDORS)
def test_a_life_with_a_restart_at_every_step(name: str) -> None:
    async def scenario(life: Life) -> None:
        cluster, vendor, plugin = life.cluster, life.vendor, life.plugins["n1"]
        # There are no cards before they are registered.
        early = await life.admitted(vendor.pod("early"))
        assert (await life.filter(early))["FailedNodes"] == {"n1": "node unregistered"}
        await plugin.register()
        await cluster.seen_by(life.extender)
        await life.extender.instance.process.scheduler.handshakes.round()
        assert (await cluster.annotations("n1"))[vendor.handshake].startswith("Requesting_")
        await life.restart()

        pod = vendor.pod("a", vendor.limits, {})
        made = patched(pod, await life.extender.review(pod))
        assert made["spec"]["schedulerName"] == vendor.scheduler
        assert [each["name"] for each in made["spec"]["containers"][0].get("env", [])] == list(vendor.env)
        await life.restart()
        first = await cluster.create(made)
        await life.restart()

        assert (await life.filter(first))["NodeNames"] == ["n1"]
        given = await cluster.pod("a")
        taken = await check_cards(cluster, vendor)
        assert sum(taken.values()) > 0
        await life.restart()
        # What filter gave is taken, though the pod is not bound and the extender is another one.
        assert (await life.filter(await life.admitted(vendor.pod("b", vendor.large))))["FailedNodes"]
        await life.restart()

        assert await life.extender.bind(given, "n1") == ""
        assert (await life.locks())[0].endswith(",default,a")
        await life.restart()
        assert (await life.filter(await cluster.pod("b")))["FailedNodes"]
        assert await plugin.allocate()
        assert not await plugin.allocate()
        served = (await cluster.pod("a"))["metadata"]["annotations"]
        assert served[PHASE] == "success"
        assert await life.locks() == []
        await life.restart()

        await cluster.finish("a")
        await life.restart()
        assert (await life.filter(await cluster.pod("b")))["NodeNames"] == ["n1"]
        await life.restart()
        assert await life.extender.bind(await cluster.pod("b"), "n1") == ""
        while await plugin.allocate():
            pass
        assert await life.locks() == []
        await check_cards(cluster, vendor)

    play(name, scenario)


@pytest.mark.parametrize("name", VENDORS)
def test_many_pods_at_once_take_no_more_than_there_is(name: str) -> None:
    """Filters and binds come at once; the device plugin serves one pod after the other."""

    async def scenario(life: Life) -> None:
        cluster, vendor = life.cluster, life.vendor
        for plugin in life.plugins.values():
            await plugin.register()
        pods = [await life.admitted(vendor.pod(f"p{number}")) for number in range(12)]
        await cluster.seen_by(life.extender)
        endpoints = life.extender.instance.process.endpoints
        assert endpoints is not None
        port = endpoints.port

        async def filter_(pod: Json) -> str:
            body = {"Pod": pod, "Nodes": None, "NodeNames": list(life.nodes)}
            answer = (await post(port, "/filter", body)).json
            return (answer.get("NodeNames") or [""])[0]

        nodes = await asyncio.gather(*map(filter_, pods))
        await check_cards(cluster, vendor)
        waiting = {pod["metadata"]["name"]: node for pod, node in zip(pods, nodes, strict=True) if node}
        assert len(waiting) == len(life.nodes) * PODS_PER_CARD[name]

        async def bind(pod: str, node: str) -> tuple[str, str]:
            meta = {"PodName": pod, "PodNamespace": "default", "Node": node}
            return pod, str((await post(port, "/bind", meta)).json.get("Error", ""))

        while waiting:
            answers = dict(await asyncio.gather(*(bind(*each) for each in waiting.items())))
            assert all(not each or each.endswith("node lock contention") for each in answers.values()), (
                answers
            )
            bound = [pod for pod, error in answers.items() if not error]
            assert len(bound) <= len(life.nodes)
            for pod in bound:
                assert await life.plugins[waiting.pop(pod)].allocate()
        assert await life.locks() == []
        await check_cards(cluster, vendor)

    play(name, scenario, ("n1", "n2"))

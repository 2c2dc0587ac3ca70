"""Filter in HAMi's place: what it answers, what it writes, what people see, and what is left where it fails."""

from __future__ import annotations

import asyncio

import pytest
from kdsl.sandbox.faults import Answer, Delay

from tests.extender.hami.life import Life, play
from tests.extender.hami.vendors import CHOSEN_NODE, NVIDIA
from tests.extender.hami.world import NODES, Json

LARGE = NVIDIA.large


def _is_patch_of_a_pod(request: object) -> bool:
    return getattr(request, "method", "") == "PATCH" and "/pods/" in getattr(request, "path", "")


async def told(life: Life, reason: str) -> list[str]:
    """Return what the events of a reason say."""
    await life.extender.recorded()
    return sorted(each["message"] for each in life.cluster.events(reason))


def test_one_node_is_left_and_the_pod_says_which_and_what_it_has_of_it() -> None:
    async def scenario(life: Life) -> None:
        pod = await life.admitted(NVIDIA.pod("a"))
        assert await life.filter(pod) == {"NodeNames": ["n1"]}
        meta = (await life.cluster.pod("a"))["metadata"]
        assert meta["labels"] == {CHOSEN_NODE: "n1"}
        assert meta["annotations"][NVIDIA.record] == "n1-g0,NVIDIA,5000,0:;"
        assert meta["annotations"][NVIDIA.to_allocate] == meta["annotations"][NVIDIA.record]
        assert meta["annotations"]["hami.io/vgpu-time"].isdecimal()
        assert await told(life, "FilteringSucceed") == [
            "find fit node(n1), 0 nodes not fit, 2 nodes fit(n1:0.00,n2:0.00)"
        ]
        # The next one finds the other node, which is empty: nodes are packed, and n1 has no room.
        second = await life.filter(await life.admitted(NVIDIA.pod("b", LARGE)))
        assert second["NodeNames"] == ["n2"]
        assert "1 nodes not fit, 1 nodes fit(n2:0.00)" in (await told(life, "FilteringSucceed"))[1]

    play("nvidia", scenario, ("n1", "n2"), registers=True)


def test_a_pod_without_cards_may_go_anywhere() -> None:
    async def scenario(life: Life) -> None:
        pod = await life.admitted(NVIDIA.pod("a", {"cpu": "1"}))
        assert pod["spec"]["schedulerName"] == "default-scheduler"
        assert await life.extender.filter(pod, ["n2", "n1"]) == {"NodeNames": ["n2", "n1"]}
        assert CHOSEN_NODE not in (await life.cluster.pod("a"))["metadata"].get("annotations", {})

    play("nvidia", scenario, ("n1", "n2"), registers=True)


def test_rejections_tell_never_from_not_now_and_events_tell_reasons() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(await life.admitted(NVIDIA.pod("first")))
        other = await life.filter(await life.admitted(NVIDIA.pod("other")))
        assert other["NodeNames"] == ["n2"]
        answer = await life.extender.filter(await life.admitted(NVIDIA.pod("b", LARGE)), ["n1", "n2", "n9"])
        failed = {"n1": "1/1 CardInsufficientMemory", "n2": "1/1 CardInsufficientMemory"}
        assert answer["FailedNodes"] == {**failed, "n9": "node unregistered"}
        assert answer["FailedAndUnresolvableNodes"] == {"n9": "node unregistered"}
        assert answer.get("NodeNames") is None
        assert await told(life, "FilteringFailed") == [
            "1 nodes node unregistered(n9)",
            "2 nodes CardInsufficientMemory(n1,n2)",
            "no available node, 3 nodes do not meet",
        ]

    play("nvidia", scenario, ("n1", "n2"), registers=True)


def test_a_pod_that_cannot_be_written_to_has_nothing() -> None:
    async def scenario(life: Life) -> None:
        pod = await life.admitted(NVIDIA.pod("a"))
        await life.cluster.seen_by(life.extender)
        life.cluster.world.sandbox.faults.once(_is_patch_of_a_pod, Answer(403))
        answer = await life.extender.filter(pod, ["n1"])
        assert "a fault of the sandbox" in answer["Error"]
        assert len(await told(life, "FilteringFailed")) == 1
        assert len(life.extender.behaviour.reservations) == 0
        # So there is room for another one.
        assert (await life.filter(await life.admitted(NVIDIA.pod("b", LARGE))))["NodeNames"] == ["n1"]

    play("nvidia", scenario, registers=True)


def test_asked_again_the_pod_is_given_cards_anew() -> None:
    async def scenario(life: Life) -> None:
        pod = await life.admitted(NVIDIA.pod("a"))
        assert (await life.filter(pod))["NodeNames"] == ["n1"]
        for _ in range(3):
            assert (await life.filter(await life.cluster.pod("a")))["NodeNames"] == ["n1"]
        assert len(life.extender.behaviour.reservations) == 1
        # Where it does not fit any more it has nothing, and does not say so either.
        assert "FailedNodes" in await life.extender.filter(await life.cluster.pod("a"), ["n9"])
        assert CHOSEN_NODE not in (await life.cluster.pod("a"))["metadata"]["annotations"]
        await life.cluster.annotate("a", {"more": "news"})
        assert (await life.filter(await life.admitted(NVIDIA.pod("b", LARGE))))["NodeNames"] == ["n1"]

    play("nvidia", scenario, registers=True)


@pytest.mark.parametrize("weights", ["slot=1", "slot=0,core=0,memory=0", "a"])
def test_weights_that_are_none_fail_the_call(weights: str) -> None:
    async def scenario(life: Life) -> None:
        pod = NVIDIA.pod("a")
        pod["metadata"]["annotations"] = {"hami.io/device-scoring-weights": weights}
        answer = await life.extender.filter(await life.admitted(pod), ["n1"])
        assert "hami.io/device-scoring-weights" in answer["Error"]
        (event,) = await told(life, "FilteringFailed")
        assert event.startswith("calcScore failed ") and event.endswith(" for pod a")

    play("nvidia", scenario, registers=True)


def test_whole_nodes_are_looked_at_as_if_nobody_were_on_them_and_nothing_is_given() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(await life.admitted(NVIDIA.pod("first", LARGE)))
        pod = await life.admitted(NVIDIA.pod("a", LARGE))
        template = {"metadata": {"name": "n1", "annotations": {NVIDIA.register: NVIDIA.registered("t")}}}
        plain: Json = {"metadata": {"name": "plain"}}
        nodes = {"metadata": {}, "items": [plain, template]}
        answer = await life.extender.call("filter", {"Pod": pod, "Nodes": nodes, "NodeNames": None})
        assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == ["n1"]
        assert answer["FailedNodes"] == {"plain": "node unregistered"}
        assert CHOSEN_NODE not in (await life.cluster.pod("a"))["metadata"].get("annotations", {})
        assert (await life.filter(pod))["FailedNodes"] == {"n1": "1/1 CardInsufficientMemory"}

    play("nvidia", scenario, registers=True)


def test_nodes_without_the_labels_that_are_asked_for_have_no_cards() -> None:
    async def scenario(life: Life) -> None:
        await life.cluster.patch(f"{NODES}/n2", {"metadata": {"labels": {"pool": "gpu"}}})
        answer = await life.filter(await life.admitted(NVIDIA.pod("a")))
        assert answer["NodeNames"] == ["n2"]
        full = await life.filter(await life.admitted(NVIDIA.pod("b", LARGE)))
        assert full["FailedNodes"] == {"n1": "node unregistered", "n2": "1/1 CardInsufficientMemory"}

    play("nvidia", scenario, ("n1", "n2"), registers=True, node_labels={"pool": "gpu"})


def test_a_pod_that_is_deleted_before_it_is_bound_leaves_its_cards() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(await life.admitted(NVIDIA.pod("a", LARGE)))
        blocked = await life.admitted(NVIDIA.pod("b", LARGE))
        assert (await life.filter(blocked))["FailedNodes"]
        await life.cluster.remove("/api/v1/namespaces/default/pods/a")
        assert (await life.filter(blocked))["NodeNames"] == ["n1"]

    play("nvidia", scenario, registers=True)


def test_a_call_that_nobody_waits_for_is_carried_to_its_end() -> None:
    async def scenario(life: Life) -> None:
        pod = await life.admitted(NVIDIA.pod("a"))
        await life.cluster.seen_by(life.extender)
        faults, reservations = life.cluster.world.sandbox.faults, life.extender.behaviour.reservations
        faults.once(_is_patch_of_a_pod, Delay(0.1))
        call = asyncio.create_task(life.extender.filter(pod, ["n1"]))
        while not len(reservations):
            await asyncio.sleep(0.001)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await life.extender.hang_up()
        while CHOSEN_NODE not in (await life.cluster.pod("a"))["metadata"].get("annotations", {}):
            await asyncio.sleep(0.01)

    play("nvidia", scenario, registers=True)

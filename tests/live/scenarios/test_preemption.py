"""Scenarios 16 to 19: pods that make room by removing others."""

from __future__ import annotations

from kdsl.sandbox import Answer, Match

from tests.live.scenarios.world import World, live

PODS = "/api/v1/namespaces/default/pods"


async def _classes(world: World) -> None:
    for name, value in (("high", 1000), ("middle", 500)):
        body = {"metadata": {"name": name}, "value": value}
        await world.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


async def _full(world: World, *names: str) -> None:
    await _classes(world)
    for name in names:
        await world.pod(name, "3", labels={"app": name})
    await world.until(lambda: world.bound(*names))


def _goes(world: World, name: str) -> bool:
    return "deletionTimestamp" in (world.get(name) or {}).get("metadata", {})


def test_s12_16_a_pod_of_high_priority_takes_the_room_of_a_low_one() -> None:
    async def scenario(world: World) -> None:
        await _full(world, "low")
        await world.pod("first", "3", priorityClassName="high")
        await world.until(lambda: _goes(world, "low") and world.nominated("first"))
        assert world.nominated("first") == "n1"
        told = world.condition("low", "DisruptionTarget")
        assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
        [patch] = world.requests("PATCH", f"{PODS}/low/status")
        [delete] = world.requests("DELETE", f"{PODS}/low")
        assert patch.at < delete.at
        await world.until(lambda: world.events("Preempted", "low"))
        assert world.events("Preempted", "low")[0]["message"].startswith("Preempted by pod ")
        assert not world.bound("first")
        await world.delete("low")
        await world.until(lambda: world.bound("first"), 3)
        assert not world.nominated("first") and world.condition("first")["status"] == "True"

    live(scenario)


def test_s12_17_a_node_without_a_violated_budget_is_chosen() -> None:
    async def scenario(world: World) -> None:
        await _full(world, "guarded", "free")
        selector = {"matchLabels": {"app": "guarded"}}
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        await world.send("POST", path, budget)
        await world.settled_for("poddisruptionbudgets")
        await world.pod("first", "3", priorityClassName="high")
        await world.until(lambda: _goes(world, "free") and world.nominated("first"))
        assert world.nominated("first") == world.at("free") and not _goes(world, "guarded")

    live(scenario, nodes=("4", "4"))


def test_s12_18_the_room_of_a_deleted_preemptor_is_there_for_others() -> None:
    async def scenario(world: World) -> None:
        await _full(world, "low")
        await world.pod("first", "3", priorityClassName="high")
        await world.until(lambda: _goes(world, "low"))
        await world.delete("first")
        await world.delete("low")
        await world.pod("plain", "3")
        await world.until(lambda: world.bound("plain"), 3)

    live(scenario)


def test_s12_19_a_victim_that_cannot_be_deleted_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        await _full(world, "low")
        world.sandbox.faults.once(Match("DELETE", f"{PODS}/low"), Answer(500))
        await world.pod("first", "3", priorityClassName="high")
        await world.until(lambda: _goes(world, "low"), 4)
        assert len(world.requests("DELETE", f"{PODS}/low")) == 2
        await world.delete("low")
        await world.until(lambda: world.bound("first"), 3)

    live(scenario)

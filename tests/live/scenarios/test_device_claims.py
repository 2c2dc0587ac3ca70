"""Pods with device claims whose writes fail are tried again, and so are those that wait for them."""

from __future__ import annotations

from kdsl.sandbox import Answer, Delay, Match
from kdsl.sandbox.model.resources import named

from tests.live.scenarios.devices import CLAIMS, claim, gpus, pod_with_claim
from tests.live.scenarios.world import World, play

RESOURCE = named("resourceclaims", "resource.k8s.io")


def test_pods_that_wait_for_a_claim_are_woken_where_it_is_not_written() -> None:
    async def scenario(world: World) -> None:
        await gpus(world)
        await claim(world)
        world.sandbox.faults.once(Match("GET", f"{CLAIMS}/c"), Delay(0.5))
        world.sandbox.faults.once(Match("PUT", f"{CLAIMS}/c"), Answer(422))
        await world.start()
        await pod_with_claim(world, "a")
        await world.until(lambda: world.requests("GET", f"{CLAIMS}/c"))
        await pod_with_claim(world, "b")
        await world.until(lambda: "is in the process of" in world.condition("b").get("message", ""))
        await world.delete("a")
        await world.until(lambda: world.bound("b"))

    play(scenario)


def test_devices_that_are_not_taken_away_at_first_are_taken_later() -> None:
    async def scenario(world: World) -> None:
        await gpus(world, "n1", "n2")
        await claim(world)
        await world.start()
        await pod_with_claim(world, "a")
        await world.until(lambda: world.bound("a"))
        node = world.at("a")
        await world.delete("a")
        present = world.get("c", RESOURCE) or {}
        del present["status"]["reservedFor"]
        await world.send("PUT", f"{CLAIMS}/c/status", present)
        await world.patch_node(node, {"spec": {"unschedulable": True}})
        world.sandbox.faults.once(Match("PUT", f"{CLAIMS}/c/status"), Answer(403))
        await pod_with_claim(world, "b")
        await world.until(lambda: world.bound("b"))
        assert world.at("b") != node

    play(scenario)


def test_a_claim_that_is_not_deleted_at_first_is_deleted_later() -> None:
    async def scenario(world: World) -> None:
        await gpus(world)
        world.sandbox.faults.once(Match("POST", "*/pods/a/binding"), Answer(403))
        # When the binding failed, and before the next attempt.
        for _ in range(2):
            world.sandbox.faults.once(Match("DELETE", f"{CLAIMS}/*"), Answer(403))
        await world.start()
        amounts = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
        await world.pod("a", containers=[{"name": "c", "image": "i", "resources": amounts}])
        await world.until(lambda: world.bound("a"))
        status = (world.get("a") or {})["status"]
        names = [each["metadata"]["name"] for each in world.sandbox.store.bodies(RESOURCE)]
        assert names == [status["extendedResourceClaimStatus"]["resourceClaimName"]]

    play(scenario)

"""Preemptions whose victims are not deleted: the preemptor is tried again, with pauses, and only by the leader."""

from __future__ import annotations

from tests.live.cluster_api import Fault, node, pod
from tests.live.live_world import World, live


def test_a_right_that_is_missing_causes_no_requests_without_end() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", times=1000, status=403))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(30.0)
        # At once, then after 1, 2, 4, 8 and 10 s of backoff.
        assert 5 <= len(world.api.sent("DELETE", "pods/low")) <= 8
        world.api.faults.clear()
        await world.run(12.0)
        assert world.api.objects["pods"]["default/low"]["metadata"]["deletionTimestamp"]

    live(scenario)


def test_a_full_queue_of_preemptions_is_not_tried_without_end() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        await world.run(0.1)
        world.scheduler.outlets.make_room = lambda pod, decision, victims: False  # type: ignore[method-assign]
        world.api.create("pods", pod("high", priority=100))
        await world.run(30.0)
        assert 5 <= world.scheduler.loop.counts.decisions <= 8

    live(scenario)


def test_a_preemption_that_fails_once_in_a_while_is_tried_again_at_once() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", status=500))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(0.5)
        assert len(world.api.sent("DELETE", "pods/low")) == 2
        # The victim stays: somebody gives it a finalizer, and it is replaced by another pod of low priority.
        world.api.remove("pods", "default/low")
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", status=500))
        await world.run(3.0)
        assert len(world.api.sent("DELETE", "pods/low")) == 4

    live(scenario)


def test_who_lost_the_lease_deletes_no_further_victim() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=2))
        for name in ("low-1", "low-2"):
            world.api.create("pods", pod(name, on="n1"))
        world.api.faults.append(Fault("PATCH", "pods/low-1/status", delay=2.0))
        world.api.faults.append(Fault("PATCH", "pods/low-2/status", delay=2.0))
        await world.run(0.1)
        world.api.create("pods", pod("high", cpu=2, priority=100))
        await world.run(1.0)
        world.leads = False
        await world.run(10.0)
        assert [one.method for one in world.api.requests if "/pods/low-" in one.path] == ["PATCH"]
        world.leads = True
        await world.run(15.0)
        assert len(world.api.sent("DELETE", "low-1")) == len(world.api.sent("DELETE", "low-2")) == 1

    live(scenario)


def test_room_for_a_former_pod_of_its_name_lets_no_pod_go() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", delay=3.0, status=403))
        world.api.faults.append(Fault("DELETE", "pods/low", delay=30.0))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(1.0)
        world.api.remove("pods", "default/high")
        world.api.create("pods", pod("high", priority=100))
        queue = world.scheduler.engine.queue
        await world.run(1.0)
        queue.activate(["default/high"])
        assert queue.place_of("default/high") == "gated"
        await world.run(4.0)
        assert queue.place_of("default/high") == "gated"

    live(scenario)

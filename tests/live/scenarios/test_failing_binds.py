"""Scenarios 9 to 15: bindings that are refused, lost, slow, or overtaken."""

from __future__ import annotations

from kdsl.sandbox import Answer, Delay, LoseAnswer, Match

from tests.live.scenarios.world import World, live

BINDING = Match("POST", "*/pods/*/binding")


def _of(name: str) -> Match:
    return Match("POST", f"*/pods/{name}/binding")


def test_s12_9_a_binding_that_is_refused_once_is_told_and_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(_of("a"), Answer(409))
        began = world.now
        await world.pod("a")
        await world.until(lambda: world.condition("a").get("reason") == "SchedulerError")
        assert world.condition("a")["message"].startswith('running Bind plugin "DefaultBinder": ')
        await world.until(lambda: world.bound("a"), 3)
        assert world.now - began > 0.5
        assert world.condition("a")["status"] == "True" and len(world.bindings("a")) == 2

    live(scenario)


def test_s12_11_retry_after_is_obeyed_without_a_condition() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(_of("a"), Answer(429, retry_after=1))
        await world.pod("a")
        await world.until(lambda: world.bound("a"), 20)
        first, second = world.bindings("a")
        assert second.at - first.at >= 1 and not world.patches("a")

    live(scenario)


def test_s12_12_a_binding_whose_answer_is_lost_leaves_no_false_condition() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(_of("a"), LoseAnswer())
        await world.pod("a")
        await world.until(lambda: world.events("Scheduled", "a"))
        await world.settled()
        assert world.condition("a")["status"] == "True"
        assert not world.patches("a") and len(world.bindings("a")) == 1
        assert not world.events("FailedScheduling", "a")

    live(scenario)


def test_s12_13_a_pod_deleted_during_a_slow_binding_leaves_its_room_at_once() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(_of("a"), Delay(2.5))
        await world.pod("a", "3")
        await world.until(lambda: world.bindings("a"))
        await world.delete("a")
        await world.pod("b", "3")
        await world.until(lambda: world.bound("b"))
        [slow] = world.bindings("a")
        assert slow.status == 0
        await world.until(lambda: slow.status == 404)
        await world.settled()
        # Nothing is told of a pod that is gone.
        assert not world.patches("a") and not world.events("*", "a")

    live(scenario)


def test_s12_14_a_pod_made_anew_during_a_slow_binding_is_decided_by_itself() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(_of("a"), Delay(0.4))
        old = await world.pod("a", "3")
        await world.until(lambda: world.bindings("a"))
        await world.delete("a")
        new = await world.pod("a", "3")
        await world.until(lambda: world.bound("a") and world.bindings("a")[0].status)
        first, second = world.bindings("a")
        assert first.document["metadata"]["uid"] == old["metadata"]["uid"] and first.status in (404, 409)
        assert second.document["metadata"]["uid"] == new["metadata"]["uid"] and second.status == 201
        await world.settled()
        assert world.condition("a")["status"] == "True" and not world.patches("a")

    live(scenario)


def test_fault_6_slow_writes_of_conditions_do_not_keep_bindings_waiting() -> None:
    async def scenario(world: World) -> None:
        # None of them is answered before all pods that fit have to be bound.
        world.sandbox.faults.always(Match("PATCH", "*/status"), Delay(20))
        world.sandbox.faults.always(Match("POST", "*/events"), Delay(20))
        for number in range(40):
            await world.pod(f"big-{number}", "100")
        for number in range(40):
            await world.pod(f"fits-{number}", "10m")
        await world.until(lambda: world.bound(*(f"fits-{number}" for number in range(40))), 15)
        assert not any(world.condition(f"big-{number}") for number in range(40))

    live(scenario)


def test_fault_7_a_server_that_is_overloaded_is_left_alone_and_all_pods_are_bound() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.times(30, BINDING, Answer(429))
        names = [f"a-{number}" for number in range(30)]
        for name in names:
            await world.pod(name, "10m")
        await world.until(lambda: world.bound(*names), 5)
        assert all(world.condition(name)["status"] == "True" for name in names)

    live(scenario)

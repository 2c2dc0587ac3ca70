"""Scenarios 23, 24, 25, 27, 30: the API server restarts, is away, forgets, or ends its watches."""

from __future__ import annotations

import asyncio

from kdsl.sandbox import Answer, BreakWatch, Match

from tests.live.scenarios.world import SERVING, SHORT_LEASE, World, get, live, play


def _lists(world: World) -> dict[str, int]:
    return {each.resource: each.lists for each in world.first.process.watches.health}


def _decisions(world: World) -> int:
    return world.first.process.scheduler.loop.counts.decisions


def test_s12_23_pods_that_came_while_the_server_was_away_are_bound_once() -> None:
    async def scenario(world: World) -> None:
        before = _lists(world)
        world.sandbox.faults.partition()
        world.sandbox.faults.forget_history()
        names = [f"a-{number}" for number in range(100)]
        for name in names:
            await world.pod(name, "10m")
        await asyncio.sleep(0.3)
        assert not world.bindings()
        world.sandbox.faults.heal()
        await world.until(lambda: world.bound(*names), 8)
        assert sorted(each.path.split("/")[-2] for each in world.bindings()) == sorted(names)
        await world.until(lambda: all(_lists(world)[name] > before[name] for name in before), 8)

    live(scenario)


def test_s12_24_lists_after_a_compaction_change_nothing_and_wake_nobody() -> None:
    async def scenario(world: World) -> None:
        await world.pod("a", "3")
        await world.pod("big", "8")
        await world.until(lambda: world.bound("a") and world.condition("big"))
        await asyncio.sleep(0.1)
        before, decided = _lists(world), _decisions(world)
        world.sandbox.faults.forget_history()
        world.sandbox.faults.drop_watches()
        await world.until(lambda: all(_lists(world)[name] > before[name] for name in before), 8)
        await world.until(lambda: world.first.process.watches.is_ready)
        assert _decisions(world) == decided
        cache = world.first.process.scheduler.cache
        assert cache.pod_count == 1 and cache.assumed_count == 0
        await world.pod("b", "1")
        await world.until(lambda: world.bound("b"))

    live(scenario)


def test_s12_25_refused_lists_and_broken_streams_are_got_over() -> None:
    async def scenario(world: World) -> None:
        faults = world.sandbox.faults
        faults.refuse_watch_list()
        await world.node("n1")
        await world.start()
        for path, code in (("*/pods", 500), ("*/nodes", 410), ("*/namespaces", 429)):
            faults.once(Match("GET", path, "*watch=*"), BreakWatch(code))
        faults.once(Match("GET", "*/services", "*watch=*"), Answer(500))
        faults.drop_watches()
        await world.node("n2", "16")
        await world.pod("big", "8")
        await world.until(lambda: world.at("big") == "n2", 8)
        await world.until(lambda: not any(each.error for each in world.first.process.watches.health), 8)

    play(scenario)


def test_s12_27_a_pod_deleted_and_made_anew_elsewhere_unseen() -> None:
    async def scenario(world: World) -> None:
        await world.pod("a", "3", nodeName="n1")
        await world.settled()
        world.sandbox.faults.silence_watches("pods")
        await asyncio.sleep(0.02)
        await world.delete("a")
        await world.pod("a", "3", nodeName="n2")
        world.sandbox.faults.forget_history()
        world.sandbox.faults.drop_watches("pods")
        cache = world.first.process.scheduler.cache
        await world.until(lambda: (seen := cache.pod("default/a")) and seen.node_name == "n2", 8)
        await world.pod("b", "3")
        await world.until(lambda: world.at("b") == "n1")
        assert world.first.process.scheduler.loop.counts.crashes == 0

    live(scenario, nodes=("4", "4"))


def test_s12_30_a_server_that_is_away_for_long_ends_no_process_and_nothing_is_bound_meanwhile() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        leader = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: leader.leads)
        world.sandbox.faults.partition()
        await world.pod("a")
        # Longer than the deadline of its lease.
        await world.until(lambda: not leader.leads, 3)
        assert not world.bindings() and not leader.task.done()
        world.sandbox.faults.heal()
        await world.until(lambda: world.bound("a"), 8)

    play(scenario)


def test_a_scheduler_that_starts_while_the_server_is_away_waits_and_says_for_what() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        world.sandbox.faults.partition()
        await asyncio.sleep(0)
        instance = world.begin(serving=SERVING)
        await world.until(lambda: instance.process.endpoints is not None, 4)
        assert instance.process.endpoints is not None
        answer = await get(instance.process.endpoints.port, "/readyz")
        assert answer.status == 500 and b"pods: " in answer.body and b"nodes: " in answer.body
        assert not instance.task.done()
        world.sandbox.faults.heal()
        await world.until(lambda: instance.is_ready, 8)
        await world.pod("a")
        await world.until(lambda: world.bound("a"))

    play(scenario)


def test_a_scheduler_ends_soon_though_the_server_is_away() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        leader = await world.start(lease=SHORT_LEASE, drain=1)
        await world.until(lambda: leader.leads)
        await world.pod("a")
        await world.until(lambda: world.bound("a"))
        world.sandbox.faults.partition()
        await world.pod("b")
        await leader.stop(3)

    play(scenario)


def test_fault_3_a_resource_that_cannot_be_read_is_named_and_the_others_go_on() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.always(Match("GET", "*/poddisruptionbudgets"), Answer(500))
        world.sandbox.faults.drop_watches("poddisruptionbudgets")
        health = world.first.process.watches
        await world.until(lambda: any(each.error for each in health.health))
        assert [each.resource for each in health.health if each.error] == ["poddisruptionbudgets"]
        await world.pod("a")
        await world.until(lambda: world.bound("a"))

    live(scenario)

"""Scenarios 1 to 8, 26: pods that are placed, that wait and are woken, and those that are none of ours."""

from __future__ import annotations

from functools import partial

import pytest
from kdsl.base.clock import SteadyClock
from kdsl.sandbox.model.resources import NODES

from tests.live.scenarios.world import World, live, play
from tests.obs.exposition import value

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def _has_more(world: World, sent: int) -> bool:
    return len(world.requests("*", "*/events*")) > sent


def test_s12_1_a_pod_with_room_is_bound_once_and_says_so() -> None:
    async def scenario(world: World) -> None:
        made = await world.pod("a")
        await world.until(lambda: world.events("Scheduled", "a"))
        assert world.at("a") == "n1" and world.condition("a")["status"] == "True"
        [binding] = world.bindings()
        assert binding.document["metadata"]["uid"] == made["metadata"]["uid"]
        await world.settled()
        assert len(world.bindings("a")) == len(world.events("Scheduled", "a")) == 1
        assert not world.patches("a")

    live(scenario)


def test_s12_2_a_pod_that_is_too_big_says_why() -> None:
    async def scenario(world: World) -> None:
        await world.pod("big", "8")
        await world.until(lambda: world.events("FailedScheduling", "big") and world.condition("big"))
        condition, [event] = world.condition("big"), world.events("FailedScheduling", "big")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert event["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await world.settled()
        assert not world.at("big") and not world.bindings("big")

    live(scenario)


def test_s12_3_the_same_outcome_is_not_written_twice_and_becomes_a_series() -> None:
    async def scenario(world: World) -> None:
        await world.patch_node("n2", {"spec": {"taints": [TAINT]}})
        await world.pod("big", "8")
        await world.until(lambda: world.condition("big"))
        await world.settled()
        for untainted, tainted in (("n2", "n1"), ("n1", "n2")):
            sent = len(world.requests("*", "*/events*"))
            await world.patch_node(tainted, {"spec": {"taints": [TAINT]}})
            await world.patch_node(untainted, {"spec": {"taints": None}})
            await world.until(partial(_has_more, world, sent))
        assert len(world.patches("big")) == 1
        await world.until(lambda: any(each.get("series") for each in world.events("FailedScheduling", "big")))
        first, second = sorted(world.events("FailedScheduling", "big"), key=lambda each: each["eventTime"])
        assert not first.get("series") and second["series"]["count"] == 2

    live(scenario, nodes=("4", "4"))


def test_s12_4_another_reason_changes_the_message_only() -> None:
    async def scenario(world: World) -> None:
        await world.pod("big", "8")
        await world.until(lambda: world.condition("big"))
        before = world.condition("big")
        await world.node("n2", "16", taints=[TAINT])
        await world.until(lambda: world.condition("big")["message"] != before["message"], 3)
        after = world.condition("big")
        assert "untolerated taint" in after["message"] and "1 Insufficient cpu" in after["message"]
        assert {**after, "message": ""} == {**before, "message": ""}
        [condition] = world.patches("big")[-1]["status"]["conditions"]
        assert condition.keys() == {"message", "type"}

    live(scenario)


def test_s12_5_a_node_that_is_large_enough_wakes_the_pod() -> None:
    async def scenario(world: World) -> None:
        await world.pod("big", "8")
        await world.until(lambda: world.condition("big"))
        await world.node("n2", "16")
        await world.until(lambda: world.at("big") == "n2", 3)
        assert world.condition("big")["status"] == "True"

    live(scenario)


def test_s12_6_a_gated_pod_is_left_alone_until_its_gates_go() -> None:
    async def scenario(world: World) -> None:
        await world.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        await world.settled()
        assert world.condition("gated")["reason"] == "SchedulingGated"
        assert not world.patches("gated") and not world.bindings("gated") and not world.events("*", "gated")
        await world.patch("/api/v1/namespaces/default/pods/gated", {"spec": {"schedulingGates": None}})
        await world.until(lambda: world.bound("gated"))

    live(scenario)


def test_s12_7_a_pod_that_was_bound_by_hand_counts_and_is_never_touched() -> None:
    async def scenario(world: World) -> None:
        await world.pod("mine", "3", nodeName="n1")
        await world.pod("other", "2")
        await world.until(lambda: world.condition("other"))
        assert "Insufficient cpu" in world.condition("other")["message"]
        assert not world.requests("*", "*/pods/mine*")

    live(scenario)


def test_s12_8_a_queued_pod_that_somebody_else_binds_leaves_the_queue_without_a_word() -> None:
    async def scenario(world: World) -> None:
        await world.pod("big", "8")
        await world.until(lambda: world.events("FailedScheduling", "big") and world.condition("big"))
        written = len(world.requests("*", "*/pods/big*"))
        await world.bind("big", "n1")
        await world.until(lambda: world.first.process.scheduler.engine.queue.pending("default/big") is None)
        await world.delete("big")
        await world.settled()
        assert len(world.requests("*", "*/pods/big*")) == written
        assert len(world.events("*", "big")) == 1
        assert world.first.process.scheduler.feed.counts.foreign_binds == 1

    live(scenario)


def test_s12_26_the_room_of_a_pod_that_has_succeeded_is_free_within_a_second() -> None:
    async def scenario(world: World) -> None:
        await world.pod("a", "3")
        await world.until(lambda: world.bound("a"))
        await world.patch("/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Succeeded"}})
        await world.pod("b", "3")
        await world.until(lambda: world.bound("b"), 1)

    live(scenario)


def test_pods_of_other_schedulers_are_not_touched() -> None:
    async def scenario(world: World) -> None:
        await world.pod("other", schedulerName="somebody-else")
        await world.settled()
        assert not world.requests("*", "*/pods/other*") and not world.events("*", "other")

    live(scenario)


def test_a_node_without_allocatable_gets_no_pods_and_stops_nobody() -> None:
    async def scenario(world: World) -> None:
        await world.send("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}})
        assert not (world.get("bare", NODES) or {})["status"].get("allocatable")
        await world.start()
        await world.pod("a")
        await world.until(lambda: world.condition("a"))
        assert world.condition("a")["reason"] == "Unschedulable"
        assert "Too many pods" in world.condition("a")["message"]
        await world.node("n1")
        await world.until(lambda: world.at("a") == "n1", 3)

    play(scenario)


def test_fault_21_a_node_with_a_long_name_gets_pods_and_no_label() -> None:
    name = ".".join(["n" * 60] * 3)

    async def scenario(world: World) -> None:
        await world.node(name)
        await world.pod("a")
        await world.until(lambda: world.at("a") == name)
        await world.settled()
        assert not world.requests("P*", f"*/nodes/{name}*")

    live(scenario, nodes=())


def test_waits_are_measured_rightly_after_the_system_time_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = SteadyClock.now
    monkeypatch.setattr(SteadyClock, "now", lambda clock: steady(clock) - 3600 * 10**9)

    async def scenario(world: World) -> None:
        await world.pod("a")
        await world.until(lambda: world.bound("a"))
        registry = world.first.process.measures.registry

        def text() -> str:
            return bytes(registry.text()).decode()

        name = "scheduler_pod_scheduling_sli_duration_seconds"
        await world.until(lambda: f"{name}_count" in text())
        assert 0 < value(text(), f"{name}_sum", attempts="1") < 1800

    live(scenario)

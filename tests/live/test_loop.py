"""The scheduler and an API server: scenarios of `spec/live.md` 12, and what goes wrong on the way."""

from __future__ import annotations

import json

from kdsl.live.watching.changes import LivePod, ObjectChange, Verb

from tests.live.cluster_api import Fault, node, pod
from tests.live.live_world import World, live


def test_a_pod_with_room_is_bound_by_uid_and_an_event_says_so() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        made = world.api.create("pods", pod("a"))
        await world.run(0.5)
        assert world.api.node_of("default/a") == "n1"
        (binding,) = world.api.sent("POST", "/binding")
        assert json.loads(binding.body)["metadata"]["uid"] == made["metadata"]["uid"]
        assert [event["reason"] for event in world.api.events] == ["Scheduled"]
        assert world.api.sent("PATCH", "/status") == []

    live(scenario)


def test_a_pod_without_room_says_so_and_is_bound_once_there_is_some() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("a", cpu=2))
        await world.run(0.5)
        condition = world.api.condition("default/a")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        world.api.create("nodes", node("n2", cpu=4))
        await world.run(2.0)
        assert world.api.node_of("default/a") == "n2"
        assert world.api.condition("default/a") == {"type": "PodScheduled", "status": "True"}

    live(scenario)


def test_a_binding_that_fails_is_tried_again_after_one_two_and_four_seconds() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.faults.append(Fault("POST", "/binding", times=2, status=500, message="no"))
        world.api.create("pods", pod("a"))
        await world.run(0.8)
        condition = world.api.condition("default/a")
        assert condition["reason"] == "SchedulerError"
        assert condition["message"] == 'running Bind plugin "DefaultBinder": no'
        await world.run(7.5)
        assert world.api.node_of("default/a") == "n1"
        assert len(world.api.sent("POST", "/binding")) == 3
        assert world.api.condition("default/a")["status"] == "True"

    live(scenario)


def test_12_a_binding_whose_answer_is_lost_was_done_and_nothing_else_is_said() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.faults.append(Fault("POST", "/binding", is_lost=True))
        world.api.create("pods", pod("a"))
        world.is_watching = False
        await world.run(3.0)
        assert world.api.condition("default/a")["status"] == "True"
        assert [event["reason"] for event in world.api.events] == ["Scheduled"]
        assert len(world.api.sent("POST", "/binding")) == 1

    live(scenario)


def test_a_binding_that_did_not_arrive_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.faults.append(Fault("POST", "/binding", is_lost=True, is_done=False))
        world.api.create("pods", pod("a"))
        await world.run(5.0)
        assert world.api.node_of("default/a") == "n1"
        assert world.api.condition("default/a")["status"] == "True"

    live(scenario)


def test_13_a_pod_deleted_during_a_slow_binding_leaves_its_room_at_once() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.faults.append(Fault("POST", "pods/a/binding", delay=10.0))
        world.api.create("pods", pod("a"))
        await world.run(0.5)
        world.api.create("pods", pod("b"))
        await world.run(0.5)
        assert world.api.node_of("default/b") == ""
        world.api.remove("pods", "default/a")
        await world.run(2.0)
        assert world.api.node_of("default/b") == "n1"
        await world.run(15.0)
        assert world.scheduler.loop.counts.late == 1
        assert "a" not in str(world.api.sent("PATCH", "pods/a/status"))
        assert world.scheduler.cache.pod("default/a") is None

    live(scenario)


def test_13_so_does_one_that_gets_a_deletion_timestamp() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.faults.append(Fault("POST", "pods/a/binding", delay=10.0))
        world.api.create("pods", pod("a"))
        await world.run(0.5)
        world.api.create("pods", pod("b"))
        gone = {"deletionTimestamp": "2026-11-23T04:00:00Z"}
        world.api.change("pods", "default/a", lambda thing: thing["metadata"].update(gone))
        await world.run(2.0)
        assert world.api.node_of("default/b") == "n1"

    live(scenario)


def test_14_a_pod_made_anew_during_a_slow_binding_is_decided_by_itself() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=2))
        world.api.faults.append(Fault("POST", "pods/a/binding", delay=5.0))
        old = world.api.create("pods", pod("a"))
        await world.run(0.5)
        world.api.remove("pods", "default/a")
        new = world.api.create("pods", pod("a", cpu=2))
        await world.run(20.0)
        assert world.api.bound == [(new["metadata"]["uid"], "n1")]
        uids = [json.loads(one.body)["metadata"]["uid"] for one in world.api.sent("POST", "/binding")]
        assert uids == [old["metadata"]["uid"], new["metadata"]["uid"]]
        assert world.api.condition("default/a")["status"] == "True"

    live(scenario)


async def decide_and_wait(world: World) -> None:
    """Get pod `a` decided for node n1, and its binding to wait for the end of a write of its status."""
    world.api.create("nodes", node("n1", cpu=1))
    world.api.faults.append(Fault("PATCH", "/status", delay=3.0))
    world.api.create("pods", pod("a", cpu=2))
    await world.run(0.5)
    room = {"cpu": "4", "memory": "64Gi", "pods": "110"}
    world.api.change("nodes", "n1", lambda thing: thing["status"].update(allocatable=room))
    await world.run(2.0)
    assert world.scheduler.engine.being_bound("default/a") is not None
    assert world.api.sent("POST", "/binding") == []


def test_15_a_pod_is_not_bound_to_a_node_that_went_meanwhile() -> None:
    async def scenario(world: World) -> None:
        await decide_and_wait(world)
        world.api.remove("nodes", "n1")
        await world.run(3.0)
        assert world.api.sent("POST", "/binding") == []
        notes = [event["note"] for event in world.api.events if "note" in event]
        assert 'running Bind plugin "DefaultBinder": node n1 is gone' in notes
        world.api.create("nodes", node("n2"))
        await world.run(15.0)
        assert world.api.bound == [(world.api.objects["pods"]["default/a"]["metadata"]["uid"], "n2")]

    live(scenario)


def test_a_condition_of_before_does_not_come_after_the_binding() -> None:
    async def scenario(world: World) -> None:
        await decide_and_wait(world)
        await world.run(3.0)
        assert world.api.node_of("default/a") == "n1"
        assert world.api.condition("default/a") == {"type": "PodScheduled", "status": "True"}

    live(scenario)


def test_29_a_lease_that_is_lost_between_decision_and_request_begins_no_binding() -> None:
    async def scenario(world: World) -> None:
        await decide_and_wait(world)
        said = len(world.api.requests)
        world.leads = False
        await world.run(10.0)
        assert len(world.api.requests) == said
        assert world.scheduler.engine.bindings_under_way == 0
        world.leads = True
        await world.run(3.0)
        assert world.api.node_of("default/a") == "n1"

    live(scenario)


def test_16_the_victim_of_a_preemption_goes_and_its_preemptor_takes_the_room() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(1.0)
        assert world.api.condition("default/low", "DisruptionTarget")["status"] == "True"
        assert world.api.objects["pods"]["default/high"]["status"]["nominatedNodeName"] == "n1"
        assert len(world.api.sent("DELETE", "pods/low")) == 1
        world.api.remove("pods", "default/low")
        await world.run(3.0)
        assert world.api.node_of("default/high") == "n1"
        assert sorted(event["reason"] for event in world.api.events if event.get("reason")) == [
            "FailedScheduling",
            "Preempted",
            "Scheduled",
        ]

    live(scenario)


def test_18_the_room_of_a_deleted_preemptor_is_there_for_others() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(1.0)
        world.api.create("pods", pod("other"))
        await world.run(0.5)
        world.api.remove("pods", "default/high")
        assert world.api.node_of("default/other") == ""
        world.api.remove("pods", "default/low")
        await world.run(3.0)
        assert world.api.node_of("default/other") == "n1"
        assert world.scheduler.engine.nominator.promised() == ()

    live(scenario)


def test_19_a_victim_that_cannot_be_deleted_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", status=500))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(5.0)
        assert len(world.api.sent("DELETE", "pods/low")) == 2

    live(scenario)


def test_a_preemptor_is_not_tried_again_before_its_victims_are_on_their_way_out() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("low", on="n1"))
        world.api.faults.append(Fault("DELETE", "pods/low", delay=6.0))
        await world.run(0.1)
        world.api.create("pods", pod("high", priority=100))
        await world.run(2.0)
        decisions = world.scheduler.loop.counts.decisions
        world.api.create("nodes", node("n2", cpu=1, unschedulable=True))
        world.api.change("nodes", "n2", lambda thing: thing["spec"].update(unschedulable=False))
        await world.run(2.0)
        assert world.scheduler.loop.counts.decisions == decisions
        await world.run(5.0)
        assert world.api.node_of("default/high") == "n2"

    live(scenario)


def test_27_a_pod_that_was_deleted_and_made_anew_on_another_node_unseen() -> None:
    async def scenario(world: World) -> None:
        for name in ("n1", "n2"):
            world.api.create("nodes", node(name))
        world.api.create("pods", pod("s-0", on="n1"))
        await world.run(0.1)
        world.is_watching = False
        world.api.remove("pods", "default/s-0")
        world.api.create("pods", pod("s-0", on="n2", cpu=3))
        world.relist()
        await world.run(0.5)
        snapshot = world.scheduler.cache.snapshot()
        pods = {
            name: [each.key for each in info.pods] if (info := snapshot.node(name)) else []
            for name in ("n1", "n2")
        }
        assert pods == {"n1": [], "n2": ["default/s-0"]}

    live(scenario)


def test_27_also_where_the_watch_tells_of_it_as_of_one_pod() -> None:
    async def scenario(world: World) -> None:
        for name in ("n1", "n2"):
            world.api.create("nodes", node(name))
        world.api.create("pods", pod("s-0", on="n1"))
        await world.run(0.1)
        world.is_watching = False
        world.api.remove("pods", "default/s-0")
        world.api.create("pods", pod("s-0", on="n2"))
        for change in world.api.changes_of_all():
            world.deliver(change)
        await world.run(0.1)
        known = world.scheduler.cache.pod("default/s-0")
        assert known is not None
        assert known.node_name == "n2"
        assert world.scheduler.feed.counts.replaced == 1

    live(scenario)


def test_8_a_pod_that_somebody_else_binds_leaves_the_queue_without_a_word() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("a", cpu=2))
        await world.run(0.5)
        said = len(world.api.requests)
        world.api.change("pods", "default/a", lambda thing: thing["spec"].update(nodeName="n1"))
        await world.run(10.0)
        assert len(world.api.requests) == said
        assert world.scheduler.feed.counts.foreign_binds == 1
        assert world.scheduler.engine.queue.pending("default/a") is None

    live(scenario)


def test_a_pod_that_somebody_else_binds_at_the_same_time_gets_no_false_condition() -> None:
    async def scenario(world: World) -> None:
        for name in ("n1", "n2"):
            world.api.create("nodes", node(name, cpu=1))
        world.api.create("pods", pod("x", on="n2"))
        await world.run(0.1)
        world.api.faults.append(Fault("POST", "/binding", delay=1.0))
        world.is_watching = False
        world.inbox.post(lambda: None)
        made = world.api.create("pods", pod("a"))
        world.deliver(world.api.changes_of_all()[-1])
        await world.run(0.5)
        world.api.change("pods", "default/a", lambda thing: thing["spec"].update(nodeName="n2"))
        await world.run(3.0)
        assert made["spec"]["nodeName"] == "n2"
        assert world.api.condition("default/a") == {}
        assert world.api.events == []
        world.relist()
        await world.run(3.0)
        known = world.scheduler.cache.pod("default/a")
        assert known is not None
        assert known.node_name == "n2"
        assert len(world.api.sent("POST", "/binding")) == 1

    live(scenario)


def test_26_the_room_of_a_finished_pod_is_free() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("a", on="n1"))
        world.api.create("pods", pod("b"))
        await world.run(0.5)
        world.api.change("pods", "default/a", lambda thing: thing["status"].update(phase="Succeeded"))
        await world.run(2.5)
        assert world.api.node_of("default/b") == "n1"

    live(scenario)


def test_30_while_the_server_is_away_nothing_is_bound_and_nothing_is_lost() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.is_away = True
        world.api.create("pods", pod("a"))
        await world.run(30.0)
        assert world.api.bound == []
        world.api.is_away = False
        await world.run(12.0)
        assert world.api.node_of("default/a") == "n1"

    live(scenario)


def test_who_does_not_lead_any_more_does_not_report_the_binding_of_the_next_leader() -> None:
    async def scenario(world: World) -> None:
        # A binding waits for the condition that is on its way.
        world.api.faults.append(Fault("PATCH", "/status", delay=3.0))
        world.api.create("nodes", node("small", cpu=1))
        world.api.create("pods", pod("a", cpu=2))
        await world.run(1.5)
        world.api.create("nodes", node("n1"))
        await world.run(1.0)
        assert world.scheduler.binder.under_way == 1 and not world.api.sent("POST", "/binding")
        world.leads = False
        world.api.change("pods", "default/a", lambda made: made["spec"].update(nodeName="n1"))
        await world.run(5)
        assert world.scheduler.binder.under_way == 0 and not world.api.sent("POST", "/binding")
        assert [event["reason"] for event in world.api.events] == ["FailedScheduling"]

    live(scenario)


def test_who_does_not_lead_binds_nothing_and_says_nothing() -> None:
    async def scenario(world: World) -> None:
        world.leads = False
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(5.0)
        assert world.api.requests == []
        world.leads = True
        await world.run(1.0)
        assert world.api.node_of("default/a") == "n1"

    live(scenario)


def test_no_more_bindings_are_under_way_than_allowed_and_news_is_taken_in_meanwhile() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=64))
        world.api.faults.append(Fault("POST", "/binding", times=2, delay=5.0))
        for at in range(5):
            world.api.create("pods", pod(f"p{at}"))
        await world.run(1.0)
        assert len(world.api.sent("POST", "/binding")) == 2
        assert world.scheduler.binder.is_full
        world.api.create("nodes", node("n2"))
        await world.run(0.5)
        assert world.scheduler.known.has_node("n2")
        await world.run(8.0)
        assert len(world.api.bound) == 5

    live(scenario, in_flight=2)


def test_an_attempt_that_ends_with_an_error_of_ours_is_counted_and_tried_again() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        await world.run(0.1)
        assert world.pump is not None
        world.pump.cancel()
        loop, engine = world.scheduler.loop, world.scheduler.engine
        place = engine._placer.cluster.assume
        try:
            engine._placer.cluster.assume = lambda pod, node: 1 / 0  # type: ignore[method-assign, assignment]
            world.api.create("pods", pod("a"))
            loop.turn(0.0)
        finally:
            engine._placer.cluster.assume = place  # type: ignore[method-assign]
        assert loop.counts.crashes == 1
        assert engine.queue.place_of("default/a") == "backoff"
        for _ in range(400):
            loop.turn(0.0)
            await world.run(0.01)
        assert world.api.node_of("default/a") == "n1"

    live(scenario)


def test_the_same_list_again_wakes_nobody() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1", cpu=1))
        world.api.create("pods", pod("x", on="n1"))
        world.api.create("pods", pod("a", cpu=2))
        await world.run(0.5)
        attempts = world.scheduler.loop.counts.decisions
        world.relist()
        await world.run(20.0)
        assert world.scheduler.loop.counts.decisions == attempts

    live(scenario)


def test_a_drop_of_an_old_pod_does_not_touch_the_new_one_of_its_name() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a", on="n1"))
        await world.run(0.1)
        live_pod = world.scheduler.known.pod("default/a")
        assert isinstance(live_pod, LivePod)
        world.deliver(ObjectChange(Verb.DROP, "pods", "default/a", "another", "", live_pod, is_stale=True))
        await world.run(0.1)
        assert world.scheduler.cache.pod("default/a") is not None

    live(scenario)

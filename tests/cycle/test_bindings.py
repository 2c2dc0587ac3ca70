"""Bindings beside the cycle: it goes on, and what came of a binding is taken in later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.binding import pre_binds_with_work
from kdsl.cycle.bindings import BindingEnd, BindingResult, Reserved
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Wait
from kdsl.hooks.status import Code, Status

from tests.cycle.world import always, attempt, cluster, plugin, pod, table

SECOND = 10**9


class Beside:
    """Bindings that are under way until a test says what came of them."""

    def __init__(self) -> None:
        self.begun: list[Reserved] = []
        self.is_stopped = False

    def begin(self, reserved: Reserved) -> BindingResult | None:
        self.begun.append(reserved)
        return None

    def stop(self, reserved: Reserved) -> bool:
        return self.is_stopped


class World:
    """An engine over one node whose plugin `P` logs what is undone."""

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        self.log: list[str] = []
        self.cache, self.clock, self.beside = cluster(1), ManualClock(10**12), Beside()
        made = plugin(unreserve=lambda: self.log.append("unreserve"), **hooks)
        self.engine = Engine([table({"P": made})], self.cache, self.clock, bindings=self.beside)

    def begin(self, name: str = "p") -> Reserved:
        self.engine.queue.add(pod(name))
        queued = self.engine.queue.pop()
        assert queued is not None
        assert self.engine.schedule_one(queued).outcome is Outcome.BINDING
        return self.beside.begun[-1]

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.cache.snapshot().info(0).pods]


def test_a_pod_that_is_being_bound_is_on_its_node_and_out_of_the_queue() -> None:
    world = World()
    world.begin()
    assert world.names == ["p"]
    assert world.engine.queue.place_of("default/p") == "leaving"
    assert world.engine.being_bound("default/p") == pod()
    assert world.engine.bindings_under_way == 1
    assert world.engine.queue.pop() is None


def test_a_bound_pod_is_placed() -> None:
    world = World()
    reserved = world.begin()
    decision = world.engine.finish(BindingResult(reserved, BindingEnd.BOUND, faults=(Fault("P", "late"),)))
    assert decision is not None
    assert (decision.outcome, decision.node, decision.faults) == (Outcome.PLACED, "n0", (Fault("P", "late"),))
    assert world.names == ["p"]
    assert world.engine.queue.place_of("default/p") == ""
    assert world.engine.bindings_under_way == 0


def test_a_failure_undoes_and_tells_of_the_room_before_the_pod_waits_again() -> None:
    world = World()
    reserved = world.begin()
    decision = world.engine.finish(BindingResult(reserved, BindingEnd.FAILED, "down", (Fault("", "down"),)))
    assert decision is not None
    assert (decision.outcome, decision.node, decision.message) == (Outcome.ERROR, "", "down")
    assert (world.log, world.names) == (["unreserve"], [])
    assert world.engine.queue.place_of("default/p") == "backoff"


def test_errors_in_a_row_wait_one_two_four_eight_ten_seconds() -> None:
    world = World()
    world.engine.queue.add(pod())
    waits = []
    for _ in range(6):
        while (queued := world.engine.queue.pop()) is None:
            world.clock.advance(SECOND)
        begun = world.clock.now()
        world.engine.schedule_one(queued)
        world.engine.finish(BindingResult(world.beside.begun[-1], BindingEnd.FAILED, "down"))
        while world.engine.queue.place_of("default/p") == "backoff":
            world.clock.advance(SECOND)
            world.engine.queue.flush()
        waits.append((world.clock.now() - begun) // SECOND - 1)
    assert waits == [1, 2, 4, 8, 10, 10]


def test_what_the_end_of_a_given_up_binding_frees_wakes_others_as_well() -> None:
    """A volume stays assumed until the request about it has ended, the room on the node does not."""
    users: list[str] = []

    def judge(pod: PodInfo) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("taken",)) if users else None

    def undo(pod: PodInfo) -> None:
        users.remove(pod.name)

    events = (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),)
    disk = plugin(
        filter_node=judge,
        reserve=lambda pod: users.append(pod.name),
        unreserve=undo,
        events=lambda: events,
    )
    world = World()
    world.engine.adopt([table({"P": disk})], None, EngineOptions())
    reserved = world.begin("a")
    queue = world.engine.queue

    def try_b() -> Outcome:
        queued = queue.pop()
        assert queued is not None and queued.pod.name == "b"
        return world.engine.schedule_one(queued).outcome

    queue.add(pod("b"))
    assert try_b() is Outcome.UNSCHEDULABLE
    world.engine.give_up(pod("a"))
    assert try_b() is Outcome.UNSCHEDULABLE
    assert queue.place_of("default/b") == "unschedulable"
    assert world.engine.finish(BindingResult(reserved, BindingEnd.FAILED, "stopped")) is None
    assert try_b() is Outcome.BINDING


def test_the_end_of_a_given_up_binding_wakes_the_next_pod_of_that_name() -> None:
    """As a StatefulSet makes them: the volume of the former pod is theirs once its request has ended."""
    events = (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),)
    is_taken = Status(Code.UNSCHEDULABLE, ("taken",))
    world = World(events=lambda: events, filter_node=lambda: is_taken if len(world.log) == 1 else None)
    reserved = world.begin("a")
    world.log.append("the volume is taken")
    world.engine.give_up(pod("a"))
    queue = world.engine.queue
    queue.add(pod("a").with_fields(uid="next"))
    queued = queue.pop()
    assert queued is not None
    assert world.engine.schedule_one(queued).outcome is Outcome.UNSCHEDULABLE
    world.engine.finish(BindingResult(reserved, BindingEnd.FAILED, "stopped"))
    assert queue.place_of("default/a") == "backoff"


def test_a_held_pod_that_former_rules_reject_is_tried_by_the_new_ones() -> None:
    deaf = {"events": lambda: (EventPattern(Resource.NODE, Action.ADD),)}
    world = World(permit=always(Wait(10 * SECOND)), **deaf)
    engine = world.engine
    for name in ("a", "b"):
        engine.queue.add(pod(name))
        queued = engine.queue.pop()
        assert queued is not None
        assert engine.schedule_one(queued).outcome is Outcome.WAITING
        world.clock.advance(SECOND)
    assert engine.waiting.reject("default/a", "P", "no")
    assert [one.outcome for one in engine.settle()] == [Outcome.UNSCHEDULABLE]
    engine.adopt([table({"P": plugin(filter_node=lambda: None, **deaf)})], None, EngineOptions())
    assert engine.queue.place_of("default/a") == "backoff"
    assert engine.waiting.reject("default/b", "P", "no")
    assert [one.outcome for one in engine.settle()] == [Outcome.UNSCHEDULABLE]
    assert engine.queue.place_of("default/b") == "backoff"


def test_room_that_is_given_back_wakes_others_once_it_is_there() -> None:
    world = World()
    reserved = world.begin()
    seen: list[tuple[Action, list[str]]] = []
    world.cache.observe(lambda event: seen.append((event.actions, world.names)))
    world.engine.finish(BindingResult(reserved, BindingEnd.FAILED, "down"))
    assert seen == [(Action.DELETE, [])]


def test_a_dropped_pod_is_not_tried_again() -> None:
    world = World()
    decision = world.engine.finish(BindingResult(world.begin(), BindingEnd.DROPPED, "bound elsewhere"))
    assert decision is not None
    assert (decision.outcome, decision.message) == (Outcome.SKIPPED, "bound elsewhere")
    assert world.names == []
    assert world.engine.queue.pending("default/p") is None


class TestPodsThatGo:
    def test_the_room_of_a_pod_that_is_gone_is_free_at_once_and_the_rest_is_undone_at_the_end(self) -> None:
        world = World()
        reserved = world.begin()
        world.engine.give_up(pod())
        assert (world.names, world.log) == ([], [])
        assert world.engine.queue.pending("default/p") is None
        assert world.engine.finish(BindingResult(reserved, BindingEnd.FAILED, "not found")) is None
        assert world.log == ["unreserve"]

    def test_the_end_of_an_old_binding_takes_nothing_from_the_new_pod_of_that_name(self) -> None:
        world = World()
        old = world.begin()
        world.engine.give_up(pod())
        world.begin()
        assert world.engine.finish(BindingResult(old, BindingEnd.FAILED, "conflict")) is None
        assert world.names == ["p"]
        assert world.engine.bindings_under_way == 1

    def test_a_held_pod_is_undone_at_once(self) -> None:
        world = World(permit=always(Wait(10 * SECOND)))
        world.engine.queue.add(pod())
        assert world.engine.schedule_one(pod()).outcome is Outcome.WAITING
        world.engine.give_up(pod())
        assert (world.names, world.log, len(world.engine.waiting)) == ([], ["unreserve"], 0)


def test_a_held_pod_is_bound_beside_the_cycle_once_it_is_allowed() -> None:
    world = World(permit=always(Wait(10 * SECOND)))
    world.engine.queue.add(pod())
    queued = world.engine.queue.pop()
    assert queued is not None
    assert world.engine.schedule_one(queued).outcome is Outcome.WAITING
    assert world.engine.waiting.deadline == 10**12 + 10 * SECOND
    world.engine.waiting.allow("default/p", "P")
    assert world.engine.waiting.is_any_settled
    assert [one.outcome for one in world.engine.settle()] == [Outcome.BINDING]


def test_the_queue_says_when_it_has_something_to_do() -> None:
    world = World()
    assert world.engine.queue.next_due is None
    world.engine.finish(BindingResult(world.begin(), BindingEnd.FAILED, "down"))
    assert world.engine.queue.next_due == 10**12 + 2 * SECOND


class TestPreFlight:
    def test_without_the_hook_a_plugin_may_have_work(self) -> None:
        of = attempt({"P": plugin(pre_bind=always(None))})
        assert [name for name, _ in pre_binds_with_work(of, "n0")] == ["P"]

    def test_who_skips_is_left_out(self) -> None:
        skipping = plugin(pre_bind=always(None), pre_bind_pre_flight=always(Status(Code.SKIP)))
        working = plugin(pre_bind=always(None), pre_bind_pre_flight=always(None))
        of = attempt({"P": skipping, "Q": working})
        assert [name for name, _ in pre_binds_with_work(of, "n0")] == ["Q"]

    def test_another_answer_ends_the_attempt(self) -> None:
        odd = plugin(
            pre_bind=always(None),
            pre_bind_pre_flight=always(Status(Code.UNSCHEDULABLE, ("no",))),
            bind=always(None),
        )
        engine = Engine([table({"P": odd})], cluster(1), ManualClock())
        decision = engine.schedule_one(pod())
        assert decision.outcome is Outcome.ERROR
        assert decision.message == 'running PreBindPreFlight "P": no'

"""From a chosen node to a bound pod: every way it can fail leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cycle.binding import MAX_WAIT
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.specs import Wait
from kdsl.hooks.status import Code, Status

from tests.cycle.world import always, cluster, engine, plugin, pod, table

SECOND = 10**9
REFUSAL = Status(Code.UNSCHEDULABLE, ("taken",))


class World:
    """An engine whose plugin `P` logs its calls and gives the answers of the test."""

    def __init__(self, **answers: Callable[[], Any]) -> None:
        self.log: list[str] = []
        self.cache = cluster(1)
        self.clock = ManualClock()
        points = ("reserve", "unreserve", "permit", "pre_bind", "bind", "post_bind")
        hooks = {point: self._hook(point, answers.get(point, always(None))) for point in points}
        self.engine = Engine([table({"P": plugin(**hooks)})], self.cache, self.clock)

    def _hook(self, point: str, answer: Callable[[], Any]) -> Callable[[str], Any]:
        def hook(node: str) -> Any:
            self.log.append(point)
            return answer()

        return hook

    def run(self) -> Decision:
        return self.engine.schedule_one(pod(nominated_node_name="n0"))

    @property
    def is_clean(self) -> bool:
        """Return whether neither a pod on the node nor a nomination is left."""
        return not self.cache.snapshot().info(0).pods and not self.engine.nominator.node_of(pod())


def test_all_phases_run_in_order() -> None:
    world = World()
    assert world.run().outcome is Outcome.PLACED
    assert world.log == ["reserve", "permit", "pre_bind", "bind", "post_bind"]
    assert [one.name for one in world.cache.snapshot().info(0).pods] == ["p"]


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_refusal_reads_like_a_fit_error_of_one_node(point: str) -> None:
    world = World(**{point: always(REFUSAL)})
    decision = world.run()
    assert (decision.outcome, decision.node) == (Outcome.UNSCHEDULABLE, "")
    assert decision.message == "0/1 nodes are available: 1 taken."
    assert world.log[-1] == "unreserve"
    assert world.is_clean


@pytest.mark.parametrize(
    ("point", "answer", "message"),
    [
        ("reserve", Status(Code.ERROR, ("down",)), 'running Reserve plugin "P": down'),
        ("permit", Status(Code.ERROR, ("down",)), 'running Permit plugin "P": down'),
        ("permit", Status(Code.SKIP), 'running Permit plugin "P": unexpected status Skip'),
        ("pre_bind", REFUSAL, 'running PreBind plugin "P": taken'),
        ("bind", REFUSAL, 'running Bind plugin "P": taken'),
        ("bind", Status(Code.SKIP), "no bind plugin took the pod"),
    ],
)
def test_errors_are_named_and_everything_is_given_back(point: str, answer: Status, message: str) -> None:
    world = World(**{point: always(answer)})
    decision = world.run()
    assert (decision.outcome, decision.message, decision.node) == (Outcome.ERROR, message, "")
    assert world.log[-1] == "unreserve"
    assert world.is_clean


def test_a_plugin_that_fails_while_giving_back_is_a_fault_beside_the_message() -> None:
    world = World(reserve=always(REFUSAL), unreserve=lambda: 1 / 0)
    decision = world.run()
    assert decision.message == "0/1 nodes are available: 1 taken."
    (fault,) = decision.faults
    assert str(fault) == 'running Unreserve plugin "P": ZeroDivisionError: division by zero'
    assert world.is_clean


def test_a_plugin_that_fails_after_the_binding_changes_nothing() -> None:
    decision = World(post_bind=lambda: 1 / 0).run()
    assert (decision.outcome, decision.node) == (Outcome.PLACED, "n0")
    (fault,) = decision.faults
    assert str(fault) == 'running PostBind plugin "P": ZeroDivisionError: division by zero'
    file, _, function = fault.code[0]
    assert (file, function) == (__file__, "hook")


def test_pre_bind_may_skip() -> None:
    assert World(pre_bind=always(Status(Code.SKIP))).run().outcome is Outcome.PLACED


def test_the_first_bind_plugin_that_does_not_skip_has_the_last_word() -> None:
    asked: list[str] = []
    plugins = {
        "A": plugin(bind=always(Status(Code.SKIP))),
        "B": plugin(bind=always(None)),
        "C": plugin(bind=lambda: asked.append("C")),
    }
    assert Engine([table(plugins)], cluster(1), ManualClock()).schedule_one(pod()).outcome is Outcome.PLACED
    assert asked == []


class TestWaiting:
    def test_a_held_pod_keeps_its_node_until_it_is_let_go(self) -> None:
        world = World(permit=always(Wait(10 * SECOND)))
        decision = world.run()
        assert (decision.outcome, decision.node) == (Outcome.WAITING, "n0")
        assert decision.message == "one or more plugins asked to wait and no plugin rejected pod"
        assert world.log == ["reserve", "permit"]
        assert list(world.engine.settle()) == []
        assert len(world.cache.snapshot().info(0).pods) == 1
        assert world.run().outcome is Outcome.SKIPPED

        assert world.engine.waiting.allow("default/p", "P")
        (settled,) = world.engine.settle()
        assert (settled.outcome, settled.node, settled.snapshot) == (Outcome.PLACED, "n0", decision.snapshot)
        assert world.log[2:] == ["pre_bind", "bind", "post_bind"]

    def test_a_held_pod_can_be_rejected(self) -> None:
        world = World(permit=always(Wait(10 * SECOND)))
        world.run()
        world.engine.waiting.reject("default/p", "P", "gang is incomplete")
        (settled,) = world.engine.settle()
        assert (settled.outcome, settled.node) == (Outcome.UNSCHEDULABLE, "")
        assert settled.message == "0/1 nodes are available: 1 gang is incomplete."
        assert world.log[-1] == "unreserve"
        assert world.is_clean

    def test_time_runs_out_on_the_clock_and_never_later_than_a_quarter_of_an_hour(self) -> None:
        world = World(permit=always(Wait(3_600 * SECOND)))
        world.run()
        world.clock.advance(MAX_WAIT - 1)
        assert list(world.engine.settle()) == []
        world.clock.advance(1)
        (settled,) = world.engine.settle()
        assert settled.message == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 15m0s at plugin P."
        )
        assert world.is_clean

    def test_a_rejection_by_another_plugin_wins_over_waiting(self) -> None:
        plugins = {"A": plugin(permit=always(Wait(SECOND))), "B": plugin(permit=always(REFUSAL))}
        one = Engine([table(plugins)], cluster(1), ManualClock())
        assert one.schedule_one(pod()).message == "0/1 nodes are available: 1 taken."
        assert len(one.waiting) == 0

    def test_decisions_end_with_pods_that_can_go_on(self) -> None:
        world = World(permit=always(Wait(0)))
        outcomes = [decision.outcome for decision in world.engine.decisions([pod()])]
        assert outcomes == [Outcome.WAITING, Outcome.UNSCHEDULABLE]


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_pods_that_are_turned_away_do_not_wake_each_other(point: str) -> None:
    """The plugin names no events, so any event wakes its pods."""
    with engine({"P": plugin(**{point: always(REFUSAL)})}) as scheduler:
        assert len(list(scheduler.decisions([pod("a"), pod("b")], attempts=9))) == 2
        scheduler.nominator.add(pod("c", priority=1), "n1")
        scheduler.queue.add(pod("c", priority=1))
        # The room that was kept for the third is free for the others.
        assert [one.pod for one in scheduler.decisions([], attempts=2)] == [
            f"default/{name}" for name in "cab"
        ]


def test_what_a_pod_reserves_is_told_to_others_once_it_stays() -> None:
    friendly = plugin(
        events=lambda: (EventPattern(Resource.ASSIGNED_POD, Action.ADD),),
        filter_node=lambda pod, node: None if pod.name == "a" or node.pods else REFUSAL,
    )
    with engine({"P": friendly}) as scheduler:
        found = scheduler.decisions([pod("b", priority=1), pod("a")], attempts=2)
        assert [(one.pod, bool(one.node)) for one in found] == [
            ("default/b", False),
            ("default/a", True),
            ("default/b", True),
        ]

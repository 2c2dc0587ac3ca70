"""Hints of plugins about events, in a running scheduler: one that fails is seen, and loses no pod."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cycle.decision import Decision
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Code, Status

from tests.cycle.world import plugin
from tests.live.cluster_api import node, pod
from tests.live.live_world import World, live, profile_of

NOTHING: dict[str, Any] = {}


class Listener:
    """Keeps the decisions of a loop."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []

    def decided(self, decision: Decision, queued: object, seconds: float) -> None:
        self.decisions.append(decision)

    def ended(self, decision: Decision, pod: object) -> None:
        pass


@pytest.mark.parametrize(
    "hooks",
    [
        {"queueing_hint": lambda pod, event: NOTHING["k"]},
        {"queueing_hint": lambda pod, event: None},
        {"queueing_hints": lambda pods, event: NOTHING["k"]},
        {"queueing_hints": lambda pods, event: [None] * len(pods)},
        {"queueing_hint": lambda pod, event: False, "queueing_hints": lambda pods, event: "no"},
    ],
)
def test_a_hint_that_fails_wakes_the_pod_and_the_decision_has_its_error(hooks: dict[str, Any]) -> None:
    def build(context: PluginContext) -> object:
        def filter_node(node: Any) -> Status | None:
            return None if node.name == "n2" else Status(Code.UNSCHEDULABLE, ("not n2",))

        events = (EventPattern(Resource.NODE, Action.ADD),)
        return plugin(filter_node=filter_node, events=lambda: events, **hooks)

    async def scenario(world: World) -> None:
        listener = Listener()
        world.scheduler.loop.listen(listener)
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(0.5)
        world.api.create("nodes", node("n2"))
        await world.run(2.0)
        assert world.api.node_of("default/a") == "n2"
        first, second = listener.decisions
        assert first.faults == ()
        assert [fault.source for fault in second.faults] == ["Picky"]
        assert world.scheduler.loop.counts.crashes == 0

    live(scenario, make=profile_of(Picky=build))

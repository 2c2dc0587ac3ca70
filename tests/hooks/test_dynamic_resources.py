"""The plugin that speaks for device claims where a pod has none."""

from __future__ import annotations

from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Code, Status

from kdsl_plugins.dynamic_resources.plugin import DynamicResources
from tests.cycle.test_preemption import sized, world
from tests.cycle.world import always, plugin


class NoBinder:
    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return None


def spokesman() -> DynamicResources:
    context = PluginContext(NoBinder(), ManualClock(), WaitingPods[object]())
    return DynamicResources({}, context)


def text(plugins: dict[str, object]) -> str:
    """The message of a pod that fits nowhere, and for which nobody would go."""
    engine, _ = world({"n": 1}, plugins=plugins)
    return engine.schedule_one(sized("p", 2)).message


def test_it_has_nothing_to_take_back_and_others_go_on() -> None:
    assert text({"DynamicResources": spokesman()}).startswith(
        "0/1 nodes are available: 1 full. no new claims to deallocate, preemption: "
    )


def test_where_pre_filter_ended_before_it_nobody_goes_on() -> None:
    refusal = plugin(pre_filter=always(Status(Code.UNRESOLVABLE, ("no claim",))))
    found = text({"First": refusal, "DynamicResources": spokesman()})
    assert found == "0/1 nodes are available: no claim. not found"

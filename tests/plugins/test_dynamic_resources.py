"""DynamicResources: pods that claim devices wait, and others do not notice."""

from __future__ import annotations

from typing import Any

from kdsl.base.clock import ManualClock
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Code
from kdsl.sim.run import SimulatedBinder

from kdsl_plugins.default_binder.plugin import DefaultBinder
from kdsl_plugins.dynamic_resources.plugin import DynamicResources
from tests.cycle.world import cluster, pod, table

WAITS = "pod has resource claims, which this scheduler does not allocate"


def scheduler() -> Engine:
    cache = cluster(2)
    context = PluginContext(SimulatedBinder(cache), ManualClock(), WaitingPods[Any](), MemoryVolumes(cache))
    plugins = {"DynamicResources": DynamicResources({}, context), "binder": DefaultBinder({}, context)}
    return Engine([table(plugins)], cache, ManualClock(), EngineOptions(detail=Detail.FULL))


def decide(*claims: str) -> Decision:
    return scheduler().schedule_one(pod(resource_claims=claims))


def test_a_pod_without_claims_is_placed() -> None:
    decision = decide()
    assert decision.outcome is Outcome.PLACED
    assert decision.prefilter.skipped == ("DynamicResources",)


def test_a_pod_with_claims_waits_on_every_node() -> None:
    decision = decide("gpu")
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message.startswith(f"0/2 nodes are available: 2 {WAITS}.")
    assert {verdict.status.code for verdict in decision.verdicts if verdict.status} == {Code.PENDING}


def test_no_event_wakes_it() -> None:
    engine = scheduler()
    assert [each.outcome for each in engine.decisions([pod(resource_claims=("gpu",))])] == [
        Outcome.UNSCHEDULABLE
    ]
    assert engine.queue.place_of("default/p") == "unschedulable"
    assert engine.waking_events("default/p") == ()

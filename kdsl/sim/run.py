"""Runs a workload through the engine: the same cycle as live scheduling, with nothing behind the binder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.errors import KdslError
from kdsl.check.model import RuleSet
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.pod import PodInfo
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.hooks.status import Status
from kdsl.report.simulation import Simulation
from kdsl.report.summary import SummaryBuilder, requested_totals
from kdsl.sim.workload import Workload

Stopwatch = Callable[[], int]
"""Tells nanoseconds from any start: measures decisions, never takes part in them."""


class SimulatedBinder:
    """Takes every binding: the pod counts as placed the moment it is bound."""

    def __init__(self, cluster: ClusterCache) -> None:
        self._cluster = cluster

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        self._cluster.add_pod(pod.on(node))
        return None


def simulate(
    rules: RuleSet,
    workload: Workload,
    settings: Settings,
    on_decision: Callable[[], None] = lambda: None,
    stopwatch: Stopwatch = time.perf_counter_ns,
) -> Simulation:
    """Give every pending pod one attempt in queue order and return the decisions with their summary.

    `on_decision` is called after each. The decisions depend on nothing but the arguments before it.
    """
    decisions: list[Decision] = []
    with _engine(rules, workload, settings) as (engine, cluster):
        summary = SummaryBuilder(requested_totals(cluster.snapshot()))
        started = stopwatch()
        for decision in engine.decisions(workload.pending):
            summary.observe(decision, stopwatch() - started)
            decisions.append(decision)
            on_decision()
            started = stopwatch()
        return Simulation(decisions, summary.build(cluster.snapshot()))


def explain(rules: RuleSet, workload: Workload, settings: Settings, pod: PodInfo) -> Decision:
    """Return the decision for `pod` in full, on the cluster as it finds it when its turn comes."""
    with _engine(rules, workload, replace(settings, detail=Detail.FULL)) as (engine, _):
        for decision in engine.decisions(workload.pending):
            if decision.pod == pod.key:
                return decision
    raise KdslError(f"pod `{pod.key}` got no decision")


@contextmanager
def _engine(rules: RuleSet, workload: Workload, settings: Settings) -> Iterator[tuple[Engine, ClusterCache]]:
    cluster = workload.cluster()
    with build_engine(rules, cluster, SimulatedBinder(cluster), ManualClock(), settings) as engine:
        yield engine, cluster

"""Small workloads over time: what these tests share. Nodes have cores, pods want cores, nothing else counts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from kdsl.base.frozen_map import freeze
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.lab.rules import RunRules, rules_of
from kdsl.lab.time.plan import NodeGroup, Scaling, TimePlan
from kdsl.lab.time.run import TimedRun, run_over_time
from kdsl.lab.timed import Arrival, NodeChange, TimedWorkload
from kdsl.sim.openb import node_facts, pod_info

PLAIN = TimePlan()


def node(name: str, cores: int = 4) -> NodeFacts:
    return node_facts(name, cores * 1000, 65536, 0, "")


def pod(name: str, cores: int = 1, priority: int = 0) -> PodInfo:
    made = pod_info(name, cores * 1000, 1024, 0, (), freeze({}), 0)
    return made.with_fields(priority=priority)


def arrival(
    name: str,
    at: float,
    duration: float | None = None,
    *,
    cores: int = 1,
    priority: int = 0,
    deleted: float | None = None,
) -> Arrival:
    return Arrival(pod(name, cores, priority), at, duration, deleted)


def group(
    name: str, most: int, *, cores: int = 4, least: int = 0, price: float = 0.0, startup: float = 0.0
) -> NodeGroup:
    return NodeGroup(name, node(name, cores), least, most, price, startup)


@cache
def default_rules() -> RunRules:
    return rules_of("kubernetes.v1_36.default", {}, ())


def run(
    nodes: list[NodeFacts],
    arrivals: list[Arrival],
    plan: TimePlan = PLAIN,
    changes: list[NodeChange] | None = None,
    placed: list[PodInfo] | None = None,
) -> TimedRun:
    rules = default_rules()
    workload = TimedWorkload(nodes, arrivals, placed or [], changes or [])
    return run_over_time(rules.rules, rules.profile, workload, plan)


def story(result: TimedRun) -> dict[str, tuple[float | None, float | None, float | None, float, int]]:
    """Return arrival, start, end, waiting and evictions of each pod, in seconds."""
    return {
        log.pod.name: (
            _seconds(log.arrived),
            _seconds(log.started),
            _seconds(log.ended),
            log.waited / 10**9,
            log.evictions,
        )
        for log in result.pods
    }


def scaled(groups: list[NodeGroup], expander: str = "-waste", **about: float) -> TimePlan:
    scaling = replace(Scaling(expander, idle_after=60.0), **about)
    return TimePlan(groups=tuple(groups), scaling=scaling)


def _seconds(time: int | None) -> float | None:
    return None if time is None else time / 10**9

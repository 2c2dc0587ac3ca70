"""An engine that keeps frames from pod to pod decides as one that is new for each pod."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.objects import LabelSelectorSpec
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision, Detail, TieBreak
from kdsl.cycle.engine import Engine

from tests.plan.lab import DEFAULT_QUEUE, rules

RULES = """
fn near(terms: list(PodAffinityTerm), p: Pod): bool = terms.all(t, t.matches(p))
predicate Fits { require pod.requests["cpu"] <= node.allocatable["cpu"] - node.requested["cpu"] else "full" }
predicate Apart {
  let existing = cluster.requiredAntiAffinityTerms.count(t, t.matches(pod))
  for t in pod.requiredAntiAffinity {
    let found = topology(t.topologyKey).count(p, near(pod.requiredAntiAffinity, p))
    require found.here(node) == 0 else "apart over ${t.topologyKey}: ${found.total()} of ${pod.priority}"
  }
  require existing.here(node) == 0 else "not wanted"
}
predicate Served {
  param most = 12
  applies when cluster.services(pod).size() > 0 || pod.priority > 1
  require cluster.services(pod).size() < 3 else "too many services"
  require pod.priority < 2 || 4 / (pod.priority - 2) < node.podCount + 100 else "no"
  require cluster.services(pod).all(s, topology("zone").count(p, s.includes(p)).here(node) < most) else "zone is full"
}
score Spread {
  let counts = pod.labels.transformList(k, v, topology("zone").count(p, p.labels[?k].orValue("") == v))
  ignore when pod.priority > 0 && !("zone" in node.labels)
  value counts.map(c, c.here(node)).sum() + (pod.priority > 0 ? node.podCount : 0)
  normalize reverse
}
"""
NODES = 24


@cache
def program() -> RuleSet:
    profile = f"""{DEFAULT_QUEUE}
    profile p {{ scheduler "default-scheduler" queue Q predicates {{ Fits Apart Served }} scores {{ Spread weight 3 }} }}"""
    return rules(RULES + profile)


def pod(number: int) -> PodInfo:
    app = "abc"[number % 3]
    same = LabelSelector.of(LabelSelectorSpec(match_labels={"app": app}))
    apart = PodAffinityTerm("zone" if number % 4 else "host", 0, same, frozenset({"default"}), None)
    return PodInfo(
        f"p{number}",
        uid=f"u{number}",
        labels=FrozenMap({"app": app}),
        priority=number % 3,
        requests=Resources({"cpu": 500}),
        usage=Resources({"cpu": 500}),
        required_anti_affinity=(apart,) if app == "c" else (),
    )


def run(parallelism: int, detail: Detail, is_kept: bool) -> list[Decision]:
    """Place pods of three signatures while a node changes and services come: with one engine, or with a new one
    for each pod.
    """
    cluster, clock = ClusterCache(), ManualClock()
    for at in range(NODES):
        cluster.add_node(_node(at))
    settings = Settings(parallelism=parallelism, detail=detail, tie_break=TieBreak.FIRST)
    with ExitStack() as engines:

        def engine() -> Engine:
            return engines.enter_context(
                build_engine(program(), cluster, MemoryBinder(cluster), clock, settings)
            )

        only, decisions = engine(), []
        for number in range(90):
            if number == 30:
                cluster.add_node(_node(3, zone="z9"))
            if number in (20, 50):
                cluster.put(_service(f"s{number}", {"app": "a"} if number == 20 else {}))
            decisions.append((only if is_kept else engine()).schedule_one(pod(number)))
    return decisions


def _node(at: int, **labels: str) -> NodeFacts:
    found = {"host": f"n{at}", **({"zone": f"z{at % 5}"} if at % 6 else {}), **labels}
    return NodeFacts(f"n{at}", labels=FrozenMap(found), allocatable=Resources({"cpu": 2000, "pods": 20}))


def _service(name: str, selector: dict[str, str]) -> Any:
    metadata = {"name": name, "namespace": "default"}
    document = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}
    (found,) = read_values([document], "service").objects
    return found


@pytest.mark.parametrize("detail", list(Detail))
@pytest.mark.parametrize("parallelism", [1, 4])
def test_decisions_stay(parallelism: int, detail: Detail) -> None:
    kept = run(parallelism, detail, is_kept=True)
    assert len({decision.node for decision in kept}) > 5
    assert kept == run(1, detail, is_kept=False)

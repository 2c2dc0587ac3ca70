"""The reads of nodes are kept from pod to pod: an engine decides as one that is new for each pod, also
while domains, terms and facts of nodes come and go.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from random import Random

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
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision, Detail, TieBreak
from kdsl.cycle.engine import Engine

from tests.plan.lab import DEFAULT_QUEUE, rules

RULES = """
fn hasAll(node: Node, keys: list(string)): bool = keys.all(k, k in node.labels)
predicate Near {
  let isFirst = topology("zone").count(p, p.labels == pod.labels).total() == 0
  for t in pod.requiredAffinity {
    let found = topology(t.topologyKey).count(p, t.matches(p))
    require t.topologyKey in node.labels && (isFirst || found.here(node) < 7) else "crowded ${t.topologyKey}"
  }
  for key in ["zone", "rack"].filter(k, pod.priority > 0) {
    let late = [topology(key).count(p, p.labels == pod.labels)].filter(c, c.total() > 10)
    require late.map(c, c.here(node)).sum() < 6 else "late ${key}"
  }
  require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) == 0 else "not wanted"
}
score Wanted {
  let counts = ["zone", "host"].map(k, topology(k).count(p, p.labels == pod.labels))
  let needing = cluster.requiredAffinityTerms.sum(t, t.matches(pod) ? 1 : 0)
  let avoiding = cluster.preferredAntiAffinityTerms.sum(t, t.matches(pod) ? t.weight : 0)
  value counts.map(c, c.here(node)).sum() + needing.here(node) - avoiding.here(node)
  normalize minmax
}
score Chosen {
  let counts = ["zone", "rack"].map(k, topology(k).count(p, p.labels == pod.labels))
  let chosen = counts.filter(c, c.total() > 9)
  value chosen.map(c, c.here(node)).sum()
  normalize minmax
}
score Late {
  let count = topology("zone").count(p, p.labels == pod.labels)
  value count.total() > 8 ? count.here(node) : 0
  normalize minmax
}
score Spread {
  let keys = ["zone", "rack"].filter(k, pod.priority > 0 || k == "zone")
  ignore when pod.priority > 1 && !hasAll(node, keys)
  let candidates = feasible.filter(n, !n.unschedulable && (pod.priority < 1 || hasAll(n, ["host"])))
  let others = feasible.filter(n, feasible.size() > 14 && "zone" in n.labels)
  let open = feasible.filter(n, cluster.nodes.filter(m, !m.unschedulable).size() > 12 || "rack" in n.labels)
  let kinds = candidates.map(n, n.labels[?"zone"].orValue("")).distinct().size() + others.size() + open.size()
  value topology("zone").eligible(n, hasAll(n, keys)).count(p, p.priority == pod.priority).here(node) * kinds
  normalize reverse
}
"""
NODES = 16


@cache
def program() -> RuleSet:
    return rules(f"""{RULES}{DEFAULT_QUEUE}
    profile p {{
      scheduler "default-scheduler" queue Q predicates {{ Near }} scores {{ Wanted weight 2 Chosen weight 1 Late weight 1 Spread weight 3 }}
    }}""")


def pod(name: str, kind: int, on: str = "", terms: tuple[PodAffinityTerm, ...] = ()) -> PodInfo:
    return PodInfo(
        name,
        uid=name,
        node_name=on,
        labels=FrozenMap({"app": "abc"[kind]}),
        priority=kind,
        required_affinity=(term("zone", kind),) if kind else (),
        required_anti_affinity=terms[:1],
        preferred_anti_affinity=terms[1:],
    )


def term(key: str, kind: int) -> PodAffinityTerm:
    selector = LabelSelector.of(LabelSelectorSpec(match_labels={"app": "abc"[kind]}))
    return PodAffinityTerm(key, 5, selector, frozenset({"default"}), None)


def node(at: int, random: Random, zones: int, is_off: bool = False) -> NodeFacts:
    labels = {"host": f"n{at}", "zone": f"z{random.randrange(zones)}", "rack": f"r{at % 3}"}
    if not random.randrange(4):
        del labels[random.choice(["zone", "rack"])]
    room = Resources({"pods": 200})
    return NodeFacts(f"n{at}", labels=FrozenMap(labels), unschedulable=is_off, allocatable=room)


def change(cluster: ClusterCache, random: Random, number: int) -> None:
    """Change the cluster in one of many ways, or not at all."""
    match random.randrange(8):
        case 0:
            is_off = not random.randrange(4)
            cluster.add_node(node(random.randrange(NODES), random, 2 + number // 8, is_off))
        case 1:
            terms = tuple(
                term(random.choice(["zone", "host", "rack"]), random.randrange(3)) for _ in range(2)
            )
            cluster.add_pod(
                pod(f"t{number}", 0, f"n{random.randrange(NODES)}", terms if number % 3 else terms[:1])
            )
        case 2:
            placed = [each for each in cluster.pods() if not random.randrange(6)]
            for each in placed:
                cluster.remove_pod(each.key)
        case 3:
            beat = node(NODES, random, 3)
            cluster.add_node(beat) if random.randrange(2) else cluster.remove_node(beat.name)


def run(seed: int, is_kept: bool) -> list[Decision]:
    """Place pods of three signatures in a changing cluster: with one engine, or with a new one for each."""
    random, cluster, clock = Random(seed), ClusterCache(), ManualClock()
    for at in range(NODES):
        cluster.add_node(node(at, random, 3))
    settings = Settings(detail=Detail.FULL, tie_break=TieBreak.FIRST)
    with ExitStack() as engines:

        def engine() -> Engine:
            return engines.enter_context(
                build_engine(program(), cluster, MemoryBinder(cluster), clock, settings)
            )

        only, decisions = engine(), []
        for number in range(60):
            change(cluster, random, number)
            decisions.append((only if is_kept else engine()).schedule_one(pod(f"p{number}", number % 3)))
    return decisions


@pytest.mark.parametrize("seed", range(6))
def test_decisions_stay_in_a_changing_cluster(seed: int) -> None:
    kept = run(seed, is_kept=True)
    assert len({decision.node for decision in kept}) > 4
    assert kept == run(seed, is_kept=False)

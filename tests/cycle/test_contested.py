"""Nodes with nominated pods are judged at once, as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.label_selectors import EVERYTHING
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.judging import Judge
from kdsl.cycle.prefilter import run_pre_filters
from kdsl.hooks.status import SUCCESS, Status

from tests.cycle.test_joined_rules import joined
from tests.cycle.world import always, plugin
from tests.plan.lab import compile_rules
from tests.plan.memo.test_joined import profile_of

NODES = 6
TERMS = (PodAffinityTerm("z", 0, EVERYTHING, frozenset({"default"}), None),)
BODIES = st.sampled_from(
    [
        'require node.podCount < 3 else "full"',
        'require node.requested["cpu"] + pod.requests["cpu"] <= node.allocatable["cpu"] else "no cpu"',
        'require node.pods.all(p, p.priority < 5 || p.namespace == pod.namespace) else unresolvable "guarded"',
        'require node.name != "n1" else "not one"',
        'on error abort\nrequire 6 / (node.podCount - 2) != 7 else "no"',
        'on error reject "failed"\nrequire 6 / (node.podCount - 1) > 0 else "no"',
        'require cluster.pods.size() < 4 else "many"',
        'require topology("z").count(p, p.priority > 4).here(node) == 0 else "near"',
        'require topology("z").sum(p, p.priority - 4).least(1) < 3 else "${node.podCount} here"',
        'require topology("z").count(p, p.namespace == pod.namespace).total() % 3 != 1 else "one more"',
        'require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) < 1 else "kept away"',
    ]
)


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    """A pod with a priority, and a request that may not fit."""
    name = draw(st.sampled_from("abcdefgh"))
    cpu = Resources({"cpu": draw(st.sampled_from([0, 1000, 3000]))})
    terms = draw(st.sampled_from([(), (), TERMS]))
    return PodInfo(
        name, priority=draw(st.integers(0, 9)), requests=cpu, usage=cpu, required_anti_affinity=terms
    )


def world(placed: list[tuple[PodInfo, int]]) -> ClusterCache:
    cache = ClusterCache()
    for at in range(NODES):
        labels = FrozenMap({"z": str(at % 2)})
        cache.add_node(NodeFacts(f"n{at}", labels=labels, allocatable=Resources({"cpu": 4000, "pods": 110})))
    for number, (pod, at) in enumerate(placed):
        cache.add_pod(pod.with_fields(name=f"placed-{number}").on(f"n{at}"))
    return cache


def judged(judge: Judge) -> object:
    found = judge.judge(np.arange(NODES))
    statuses = [found.column[at] for at in range(len(found.column))]
    passed = None if found.passed is None else found.passed.tolist()
    if passed == list(range(len(statuses))):
        passed = None
    kept = [(each.plugin, each.code, each.reasons, each.sites, each.faults) for each in statuses]
    return kept, passed, None if found.error is None else str(found.error)


@settings(deadline=None, max_examples=80)
@given(
    st.lists(BODIES, min_size=1, max_size=3),
    st.lists(st.tuples(pods(), st.integers(0, NODES - 1)), max_size=6),
    st.dictionaries(st.integers(0, NODES - 1), st.lists(pods(), min_size=1, max_size=3), max_size=NODES),
    pods(),
)
def test_nodes_are_judged_at_once_as_one_by_one(
    bodies: list[str],
    placed: list[tuple[PodInfo, int]],
    nominated: dict[int, list[PodInfo]],
    pod: PodInfo,
) -> None:
    rules = compile_rules(profile_of(bodies)).predicates
    _, together = joined({f"P{at}": rule for at, rule in enumerate(rules)})
    attempt = Attempt(together, pod, world(placed).snapshot())
    run_pre_filters(attempt)
    judge = Judge.of(attempt, nominated)
    found = judged(judge)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "takes_what_ifs", False)
        assert judged(judge) == found


def asked_of(frozen: Any, pod: PodInfo, **fields: Any) -> int:
    """Return how many of four nodes are judged by themselves; their nominated pods have these fields."""
    alone: list[int] = []
    attempt = Attempt(frozen, pod, world([]).snapshot())
    run_pre_filters(attempt)
    judge = Judge.of(attempt, {row: [PodInfo(f"q{row}", **fields)] for row in range(4)})
    original = Judge._with_nominated

    def counted(self: Judge, row: int, nominated: Any) -> Status | None:
        alone.append(row)
        return original(self, row, nominated)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judge, "_with_nominated", counted)
        judge.judge(np.arange(NODES))
    return len(alone)


def test_rules_about_the_node_and_counts_are_asked_at_once() -> None:
    near = 'require topology("z").count(p, p.priority > 4).here(node) == 0 else "near"'
    for body in ('require node.podCount < 3 else "full"', near):
        (rule,) = compile_rules(profile_of([body])).predicates
        assert asked_of(joined({"P0": rule})[1], PodInfo("p")) == 0
        assert asked_of(joined({"P0": rule})[1], PodInfo("p"), required_anti_affinity=TERMS) == 0


def test_a_plugin_is_told_of_each_pod() -> None:
    (rule,) = compile_rules(profile_of(['require node.podCount < 3 else "full"'])).predicates
    told = plugin(add_pod=always(SUCCESS), remove_pod=always(SUCCESS), pre_filter=always(None))
    assert asked_of(joined({"P0": rule, "L": told})[1], PodInfo("p")) == 4

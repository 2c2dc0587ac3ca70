"""Rules that look at other pods only to count them: a placed pod wakes those that count it, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.events import Action, Resource
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import LabelSelectorSpec
from kdsl.cluster.objects.label_selectors import read_selector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.state import CycleState

from tests.plan.lab import node, nodes_of, predicate

X, Y = FrozenMap({"app": "x"}), FrozenMap({"app": "y"})
OF = 'p.labels[?"app"].orValue("")'
NONE_HERE = f'require topology("zone").count(p, {OF} == "x").here(node) == 0 else "no"'
SOME_HERE = f'require topology("zone").count(p, {OF} == "y").here(node) > 0 else "no"'
BY_LOOP = f"""
  let apps = [pod.labels[?"app"].orValue(""), "z"]
  for app in apps where app != "" {{
    let pods = topology("zone").count(p, {OF} == app)
    require pods.here(node) == 0 else "no"
  }}
"""
BY_MACRO = f'require ["x"].all(app, topology("zone").count(p, {OF} == app).total() == 0) else "no"'
BY_BIND = f'require cel.bind(app, "x", topology("zone").count(p, {OF} == app).total() == 0) else "no"'
BY_KEYS = f"""
  for app, most in {{"x": 0}} {{
    require topology("zone").count(p, {OF} == app).here(node) <= most else "no"
  }}
"""
BY_NODE_LABELS = f"""
  for key in node.labels {{
    require topology("zone").count(p, {OF} == "x").here(node) == 0 else "no"
  }}
  require node.taints.all(t, topology("zone").count(p, {OF} == "x").here(node) == 0) else "no"
"""
BY_CONDITION = f"""
  let xs = topology("zone").count(p, {OF} == "x")
  applies when xs.total() > 0
  require false else "no"
"""
BY_TERMS = 'require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) == 0 else "no"'
BY_LEAST = f"""
  let xs = topology("zone").count(p, {OF} == "x")
  require xs.here(node) - xs.least(1) < 1 else "no"
"""
BY_NAME = f"""
  narrow to topology("zone").count(p, {OF} == "x").total() > 0 ? optional.of(["m"]) : optional.none()
    else "no"
"""
BY_OTHERS = f"""
  let all = cluster.pods.size()
  require topology("zone").count(p, {OF} == "x" && all > 0).here(node) == 0 else "no"
"""
BY_SUM = f'require topology("zone").sum(p, {OF} == "x" ? 1 : 0).here(node) == 0 else "no"'
BY_NODE = 'require node.podCount < 2 && topology("zone").count(p, p.priority > 0).here(node) == 0 else "no"'
WITH_FN = f"""
  require topology("zone").count(p, isOf(p, "x")).here(node) == 0 && isOf(pod, "x") else "no"
}}
fn isOf(p: Pod, app: string): bool = {OF} == app
predicate Other {{
  require true else "no"
"""


def placed(labels: FrozenMap[str, str], **fields: Any) -> PodInfo:
    return PodInfo("other", uid="other", labels=labels, node_name="n", **fields)


def hints(body: str, *changes: tuple[PodInfo | None, PodInfo | None]) -> str:
    """Return `+` for each change that wakes a pod `x`, `-` for the others."""
    plugin, waiting = predicate(body), PodInfo("w", uid="w", labels=X)
    plugin.pre_filter(CycleState(), waiting, nodes_of(node("n", labels={"zone": "a"})))
    found = ""
    for before, after in changes:
        actions = Action.ADD if before is None else Action.DELETE if after is None else Action.POD_LABEL
        event = ClusterEvent(Resource.ASSIGNED_POD, actions, before, after)
        found += "+" if plugin.queueing_hint(waiting, event) else "-"
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # x comes, x goes, y comes, y goes, x becomes y, y becomes x, x runs.
        pytest.param(NONE_HERE, "-+--+--", id="a count that must fall"),
        pytest.param(BY_LEAST, "++--++-", id="a count that may rise or fall"),
        pytest.param(SOME_HERE, "--+-+--", id="a count that must rise"),
        pytest.param(BY_LOOP, "-+--+--", id="a loop and names"),
        pytest.param(BY_KEYS, "-+--+--", id="a loop over a map"),
        pytest.param(BY_MACRO, "-+--+--", id="a macro"),
        pytest.param(BY_BIND, "-+--+--", id="a name in an expression"),
        pytest.param(BY_NODE_LABELS, "-+--+--", id="a loop over facts of a node"),
        pytest.param(BY_CONDITION, "-+--+--", id="a condition of the rule"),
        pytest.param(BY_NAME, "++--++-", id="the names of nodes"),
        pytest.param(WITH_FN, "-+--+--", id="a function of pods"),
        pytest.param(BY_OTHERS, "+++++++", id="a count that reads all pods"),
        pytest.param(BY_SUM, "+++++++", id="a sum"),
    ],
)
def test_a_pod_wakes_those_that_count_it(body: str, expected: str) -> None:
    x, y = placed(X), placed(Y)
    changes = ((None, x), (x, None), (None, y), (y, None), (x, y), (y, x), (x, placed(X, phase="Running")))
    assert hints(body, *changes) == expected


def test_a_pod_whose_terms_match_wakes_those_that_it_keeps_away() -> None:
    def with_terms(*apps: str) -> PodInfo:
        terms = [
            PodAffinityTerm(
                "zone",
                0,
                read_selector(LabelSelectorSpec(match_labels={"app": app})),
                frozenset({"default"}),
                None,
            )
            for app in apps
        ]
        return placed(Y, required_anti_affinity=tuple(terms))

    none, of_x, of_y = with_terms(), with_terms("y", "x"), with_terms("y")
    assert hints(BY_TERMS, (None, of_x), (of_x, None), (of_y, None), (none, None)) == "-+--"


def test_no_pods_are_asked_before_the_rule_has_run_or_if_other_facts_count() -> None:
    plugin, x = predicate(NONE_HERE), placed(Y)
    assert plugin.queueing_hint(placed(X), ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, after=x))
    assert hints(BY_NODE, (None, x), (x, None)) == "++"


def test_pods_that_are_equal_to_the_questions_are_asked_once() -> None:
    plugin = predicate(BY_LOOP)
    one, two, other = (
        PodInfo(name, uid=name, labels=labels) for name, labels in (("a", X), ("b", X), ("c", Y))
    )
    assert plugin.hint_signature(one) == plugin.hint_signature(two) != plugin.hint_signature(other)

"""The budget of rules for a pod: shares that depend only on the rules and the number of nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar.meter import Steps
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.budget import LEAST_NODE_STEPS, RuleShares
from kdsl.plan.rules.compiled_profile import CompiledProfile, compile_profile
from kdsl.plan.rules.predicate_plugin import PredicatePlugin

from tests.plan.lab import DEFAULT_QUEUE, filtered, node, nodes_of, rules

POD = PodInfo("p", namespace="d")
PASSES = "predicate {} {{ require [pod.name].all(x, x != '') else \"x\" }}\n"
WORKS = """predicate Works {{
  let r = lists.range({})
  {}
  require r.map(x, pod.priority + x).size() > {} else "too few"
}}
"""


def profile(text: str, predicates: str, steps: Steps) -> CompiledProfile:
    listed = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ {predicates} }} }}'
    found = rules(f"{text}\n{listed}")
    return compile_profile(found, found.profiles["t.p"], steps=steps)


def said(plugin: object, nodes: int) -> list[Status]:
    """Return the different answers of a predicate."""
    assert isinstance(plugin, PredicatePlugin)
    state, asked = CycleState(), nodes_of(*(node(f"n{at}") for at in range(nodes)))
    early = plugin.pre_filter(state, POD, asked)
    if isinstance(early, Status):
        return [early]
    column = filtered(plugin, state, POD, asked)
    return sorted({column[at] for at in range(nodes)}, key=str)


def test_shares_of_values_and_nodes() -> None:
    budget = RuleShares(Steps(node=20_000, pod=1_000, rule=3_000, profile=40_000))
    share = budget.share("a")
    for _ in range(3):
        share.add_value()
    assert (share.value_meter().limit, share.value_meter().is_share) == (1_000, False)
    share.add_value()
    assert (share.value_meter().limit, share.value_meter().is_share) == (750, True)
    other = budget.share("b")
    for _ in range(76):
        other.add_value()
    assert (share.value_meter().limit, other.value_meter().limit) == (500, 39)
    assert share.value_meter(parts=50).limit == 10


def test_one_part_of_many_may_take_as_much_as_a_value_where_there_is_room() -> None:
    share = RuleShares(Steps(pod=1_000, rule=50_000)).share("a")
    share.add_value()
    assert [share.value_meter(parts).limit for parts in (1, 50, 51)] == [1_000, 1_000, 980]


@pytest.mark.parametrize(
    ("nodes", "limit"), [(0, 20_000), (2, 20_000), (10, 4_000), (5_000, LEAST_NODE_STEPS)]
)
def test_the_share_of_a_node(nodes: int, limit: int) -> None:
    budget = RuleShares(Steps(rule=40_000, profile=90_000))
    share = budget.share("a")
    budget.share("b")
    meter = share.meter_over(ClusterView(cast(Any, SimpleNamespace(order=range(nodes)))))
    assert (meter.limit, meter.is_share) == (limit, limit < 20_000)


def test_the_share_of_a_node_follows_the_numbers_of_rules_and_nodes() -> None:
    budget = RuleShares(Steps(profile=90_000))
    assert budget.node_steps(0) == 20_000
    found = []
    for rule in ("a", "b", "c"):
        budget.share(rule)
        found += [budget.node_steps(nodes) for nodes in (5, 9, 9)]
    assert found == [18_000, 10_000, 10_000, 9_000, 5_000, 5_000, 6_000, 3_333, 3_333]


def test_a_rule_alone_may_take_what_many_together_may_not() -> None:
    work, steps = WORKS.format(600, "", "node.podCount"), Steps(profile=4_000)
    (plugin,) = profile(work, "Works", steps).predicates
    assert said(plugin, 2) == [Status(Code.SUCCESS)]
    others = [f"Other{at}" for at in range(6)]
    text = work + "".join(map(PASSES.format, others))
    *_, plugin = profile(text, " ".join([*others, "Works"]), steps).predicates
    (status,) = said(plugin, 2)
    assert status.code is Code.ERROR
    assert status.reasons[0].startswith("rule Works failed: more than ")
    assert "steps, the rule's share for a pod (t.kdsl:" in status.reasons[0]


def test_on_error_does_not_hide_a_spent_share() -> None:
    quiet = 'on error reject "it is unknown"'
    text = WORKS.format(9000, "", "node.podCount").replace(
        "predicate Works {", f"predicate Works {{\n{quiet}"
    )
    (plugin,) = profile(text, "Works", Steps(rule=900)).predicates
    (status,) = said(plugin, 2)
    assert (status.code, "share for a pod" in status.message) == (Code.ERROR, True)


def test_the_number_of_nodes_that_are_asked_makes_no_difference() -> None:
    # 2,500 steps on each node: enough on a few, too much where there are many.
    text = 'predicate P { require lists.range(2400).all(i, i >= node.podCount) else "x" }'
    (plugin,) = profile(text, "P", Steps(rule=100_000)).predicates
    assert said(plugin, 10) == [Status(Code.SUCCESS)]
    nodes, state = nodes_of(*(node(f"n{at}") for at in range(60))), CycleState()
    assert plugin.pre_filter(state, POD, nodes) is None  # type: ignore[union-attr]
    for chosen in ([3], [59], list(range(60))):
        column = plugin.filter(state, POD, nodes.take(chosen))  # type: ignore[union-attr, arg-type]
        assert column is not None
        assert {column[at].code for at in range(len(chosen))} == {Code.ERROR}

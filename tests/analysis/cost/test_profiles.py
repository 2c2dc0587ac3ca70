"""Budgets: diagnostics for rules and profiles that may exceed the limits of the configuration."""

from __future__ import annotations

from kdsl.analysis.cost.profiles import CostLimits, over_limits, profile_costs, total_per_node
from kdsl.check.views.view import load_views
from kdsl.report.diagnostics import render

from tests.plan.lab import DEFAULT_QUEUE, rules

VIEWS = load_views()
RULES = rules(
    f"""predicate Taints {{
  require node.taints.all(t, t.key != "") else "x"
}}
predicate Cheap {{
  require !node.unschedulable else "x"
}}
{DEFAULT_QUEUE}
profile p {{ scheduler "t" queue Q predicates {{ Taints Cheap }} }}
profile q extends p {{ scheduler "u" }}"""
)


def test_a_rule_above_its_limit_is_reported_once_for_all_profiles() -> None:
    found = over_limits(RULES, CostLimits(rule=90), VIEWS)
    assert (
        render(found)
        == """\
error[K0503]: predicate `t.Taints` takes up to 97 operations for a node, 90 are allowed
  --> t.kdsl:3:1
   |
 3 | predicate Taints {
   | ^^^^^^^^^^^^^^^^ 1 + 3·node.taints
   = note: most of it is 3·node.taints, with node.taints at 32
   = help: range over less, or raise the limit in the configuration

1 error"""
    )


def test_a_profile_is_the_sum_of_its_rules() -> None:
    profile = RULES.profiles["t.p"]
    total = total_per_node(profile_costs(RULES, profile, VIEWS))
    worst = total.at(VIEWS.most)
    assert worst == 97 + 2
    assert over_limits(RULES, CostLimits(profile=worst), VIEWS) == ()
    assert [(each.code, each.title) for each in over_limits(RULES, CostLimits(profile=worst - 1), VIEWS)] == [
        ("K0504", f"profile `{name}` takes up to 99 operations for a node, 98 are allowed")
        for name in ("t.p", "t.q")
    ]


def test_without_limits_nothing_is_too_much() -> None:
    assert over_limits(RULES, CostLimits(), VIEWS) == ()

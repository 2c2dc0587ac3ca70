"""The largest cost of the rules in each profile, for `kdsl check --plan`: formulas and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdsl.analysis.cost.formula import Formula
from kdsl.analysis.cost.profiles import KnownCosts, RuleCost, profile_costs, total_per_node
from kdsl.base.visible import visible_lines
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.views.view import Views
from kdsl.report.tables import table

_HEADER = ("KIND", "RULE", "AT MOST", "PER NODE", "AT MOST", "PER POD")
_NUMBERS = (2, 4)
_NONE = "-"

Sizes = Callable[[str], int]
"""Returns the size for a name in formulas."""


def costs_text(rules: RuleSet, views: Views, sizes: Sizes, source: str) -> str:
    """Return one table of costs per profile, and the sizes behind the numbers.

    `source` names the origin of the sizes.
    """
    parts = []
    names: set[str] = set()
    known: KnownCosts = {}
    for profile in rules.profiles.values():
        costs = profile_costs(rules, profile, views, known)
        names.update(*(each.cost.names for each in costs if each.cost is not None))
        title = f"cost of profile {profile.qualified}, in operations"
        parts.append(visible_lines((title, *table(_HEADER, _rows(costs, sizes), right=_NUMBERS))))
    shown = ", ".join(f"{name} {sizes(name):,}" for name in sorted(names))
    return "\n\n".join((*parts, f"sizes {source}: {shown or 'none'}"))


def _rows(costs: tuple[RuleCost, ...], sizes: Sizes) -> Iterator[tuple[str, ...]]:
    for each in costs:
        if each.cost is None:
            yield each.kind, each.rule.qualified, _NONE, "plugin: not known", _NONE, _NONE
        else:
            per_node, per_pod = each.cost.per_node, each.cost.per_pod
            yield (
                *(each.kind, each.rule.qualified, _number(per_node, sizes), str(per_node)),
                *(_number(per_pod, sizes), str(per_pod)),
            )
    yield "all", "", _number(total_per_node(costs), sizes), "", "", ""


def _number(formula: Formula, sizes: Sizes) -> str:
    value = formula.at(sizes)
    return "no bound" if value is None else f"{value:,}"

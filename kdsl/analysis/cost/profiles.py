"""The cost of the rules of a profile, each and together, and the rules that exceed the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kdsl.analysis.codes import CostCode
from kdsl.analysis.cost.formula import Formula, total
from kdsl.analysis.cost.rules import Cost, cost_of
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedPreemption, CheckedProfile, RuleSet, WrittenRule
from kdsl.check.views.view import Views

KnownCosts: TypeAlias = dict[int, Cost | None]
"""The costs of rules by identity."""


@dataclass(frozen=True, slots=True)
class RuleCost:
    """A rule of a profile and its cost; None for a plugin."""

    kind: str
    rule: WrittenRule
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class CostLimits:
    """The most operations per node of a rule, and of all rules of a profile; None is unlimited."""

    rule: int | None = None
    profile: int | None = None


def profile_costs(
    rules: RuleSet, profile: CheckedProfile, views: Views, known: KnownCosts | None = None
) -> tuple[RuleCost, ...]:
    """Return the cost of each rule, in their order; tightenings are separate.

    `known` receives them: profiles of one rule set share most of their rules.
    """
    known = {} if known is None else known
    found: list[RuleCost] = []
    for kind, rule in _rules(profile):
        if id(rule) not in known:
            known[id(rule)] = cost_of(rule, rules.fns, views)
        found.append(RuleCost(kind, rule, known[id(rule)]))
    return tuple(found)


def total_per_node(costs: tuple[RuleCost, ...]) -> Formula:
    """Return the cost of all rules of a profile for a node that passes.

    Preemption is left out: it runs on the other nodes.
    """
    return total(
        each.cost.per_node
        for each in costs
        if each.cost is not None and not isinstance(each.rule, CheckedPreemption)
    )


def over_limits(rules: RuleSet, limits: CostLimits, views: Views) -> tuple[Diagnostic, ...]:
    """Report every rule and profile whose worst case is above its limit, a rule once for all profiles."""
    if limits == CostLimits():
        return ()
    found: dict[tuple[Span, Formula], Diagnostic] = {}
    about_profiles: list[Diagnostic] = []
    known: KnownCosts = {}
    for profile in rules.profiles.values():
        costs = profile_costs(rules, profile, views, known)
        for each in costs:
            if each.cost is not None:
                name, cost = f"{each.kind} `{each.rule.qualified}`", each.cost.per_node
                for problem in _over(name, CostCode.DEAR_RULE, each.rule.span, cost, limits.rule, views):
                    found.setdefault((each.rule.span, cost), problem)
        name, cost = f"profile `{profile.qualified}`", total_per_node(costs)
        about_profiles += _over(name, CostCode.DEAR_PROFILE, profile.span, cost, limits.profile, views)
    return (*found.values(), *about_profiles)


def _rules(profile: CheckedProfile) -> Iterator[tuple[str, WrittenRule]]:
    yield "queue", profile.queue
    if profile.preemption is not None:
        yield "preemption", profile.preemption
    for predicate in profile.predicates:
        yield "predicate", predicate
        for tightening in predicate.tightenings:
            yield "tighten", tightening
    for entry in profile.scores:
        yield "score", entry.score


def _over(
    name: str, code: CostCode, span: Span, cost: Formula, most: int | None, views: Views
) -> Iterator[Diagnostic]:
    """Report a cost above `most`."""
    if most is None:
        return
    worst = cost.at(views.most)
    if worst is None:
        title = f"the cost of {name} for a node has no bound, {most:,} operations are allowed"
        yield Diagnostic(code, title, _first_line(span), "its values may grow without measure")
    elif worst > most:
        largest = cost.largest_term(views.most)
        yield Diagnostic(
            code,
            f"{name} takes up to {worst:,} operations for a node, {most:,} are allowed",
            _first_line(span),
            str(cost),
            notes=(f"most of it is {largest}, {sizes_text(largest.names, views.most)}",),
            help=("range over less, or raise the limit in the configuration",),
        )


def sizes_text(names: frozenset[str], sizes: Callable[[str], int]) -> str:
    """Return the assumed sizes as a text: `with node.taints at 32`."""
    if not names:
        return "whatever it reads"
    return "with " + ", ".join(f"{name} at {sizes(name):,}" for name in sorted(names))


def _first_line(span: Span) -> Span:
    text = span.text
    return Span(span.source, span.start, span.start + len(text.partition("\n")[0].rstrip(" {")))

"""The table of `kdsl check --plan` that says how each rule runs over many nodes: over columns, once per node
class, or node by node, and which expression prevents a faster way.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.visible import visible_lines
from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, CheckedScore, RuleSet
from kdsl.plan.columns.scope import ScalarPart
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin
from kdsl.report.tables import table

_HEADER = ("KIND", "RULE", "RUNS", "AT", "BECAUSE OF")
_NONE = "-"
_LONGEST = 60
Row = tuple[str, str, str, str, str]


def runs_text(rules: RuleSet) -> str:
    """Return one table per profile."""
    functions = CompiledFunctions(rules.fns)
    return "\n\n".join(
        visible_lines((f"profile {profile.qualified}", *table(_HEADER, _rows(profile, functions))))
        for profile in rules.profiles.values()
        if profile.predicates or profile.scores
    )


def _rows(profile: CheckedProfile, functions: CompiledFunctions) -> Iterator[Row]:
    for predicate in profile.predicates:
        if not predicate.plugin:
            yield from _predicate("predicate", predicate, functions)
        for tightening in predicate.tightenings:
            yield from _predicate("tighten", tightening, functions)
    for entry in profile.scores:
        if not entry.score.plugin:
            yield from _score(entry.score, functions)


def _predicate(kind: str, rule: CheckedPredicate, functions: CompiledFunctions) -> Iterator[Row]:
    program = PredicateRule(rule, functions)
    if program.columns is None:
        why = "`applies when` reads the node" if program.applies_by_node else "`narrow` is not known early"
        yield kind, rule.qualified, "node by node", _NONE, why
    else:
        yield kind, rule.qualified, "over columns", _NONE, _NONE
        yield from map(_part, program.scalar_parts)


def _score(rule: CheckedScore, functions: CompiledFunctions) -> Iterator[Row]:
    yield "score", rule.qualified, "over columns", _NONE, _NONE
    yield from map(_part, ScorePlugin(rule, functions).scalar_parts)


def _part(part: ScalarPart) -> Row:
    text = " ".join(part.span.text.split())
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    way = "node by node" if part.facts is None else "once per pod"
    if part.facts:
        way = f"once per distinct {', '.join(part.facts)}"
    return "", "", f"  {way}", f"{part.span.source.path}:{part.span.line}:{part.span.column}", shown

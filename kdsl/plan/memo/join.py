"""Joins the rules of a profile."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from kdsl.check.model.rule_set import CheckedProfile
from kdsl.hooks.table import HookTable
from kdsl.plan.memo.predicates import Predicate, PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import CompiledProfile


def join(table: HookTable, profile: CheckedProfile, compiled: CompiledProfile) -> HookTable:
    """Return the table with adjacent predicates, and all scores, joined."""
    compiled_predicates = iter(compiled.predicates)
    # Joined predicates report only the first rejection.
    rules = () if table.check_all else profile.predicates
    positions = [None if rule.plugin else next(compiled_predicates) for rule in rules]
    predicates: list[PredicateMemo] = []
    signatures = Signatures()
    for is_rule, run in groupby(positions, lambda each: each is not None):
        if is_rule:
            members: list[Predicate] = [each for each in run if each is not None]
            predicates.append(PredicateMemo(members, signatures))
    names = [hook.plugin for hook in table.scores]
    # A repeated name is ambiguous.
    is_clear = compiled.scores and len(set(names)) == len(names)
    joined_scores = ScoreMemo(compiled.scores, signatures) if is_clear else None
    return replace(table, joined_predicates=tuple(predicates), joined_scores=joined_scores)

"""Joins the rules of a profile."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from kdsl.check.model.rule_set import CheckedProfile
from kdsl.hooks.table import HookTable
from kdsl.plan.memo.predicates import JoinedPredicates, Predicate
from kdsl.plan.memo.scores import JoinedScores
from kdsl.plan.reads.signatures import Likenesses
from kdsl.plan.rules.plugins import CompiledProfile


def join(table: HookTable, profile: CheckedProfile, compiled: CompiledProfile) -> HookTable:
    """Return the table with its rules joined: predicates that follow each other, and scores."""
    compiled_predicates = iter(compiled.predicates)
    # What joined predicates say of a node is what the first of them says.
    rules = () if table.check_all else profile.predicates
    places = [None if rule.plugin else next(compiled_predicates) for rule in rules]
    predicates: list[JoinedPredicates] = []
    likenesses = Likenesses()
    for is_rule, run in groupby(places, lambda each: each is not None):
        if is_rule:
            members: list[Predicate] = [each for each in run if each is not None]
            predicates.append(JoinedPredicates(members, likenesses))
    names = [hook.plugin for hook in table.scores]
    # A name that comes twice tells nobody apart.
    is_clear = compiled.scores and len(set(names)) == len(names)
    joined_scores = JoinedScores(compiled.scores, likenesses) if is_clear else None
    return replace(table, joined_predicates=tuple(predicates), joined_scores=joined_scores)

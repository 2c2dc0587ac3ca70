"""Joins the rules of a profile."""

from __future__ import annotations

from dataclasses import replace

from kdsl.hooks.table import HookTable
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo
from kdsl.plan.memo.skips import Skips
from kdsl.plan.rules.compiled_profile import CompiledProfile


def join(table: HookTable, compiled: CompiledProfile) -> HookTable:
    """Return the table in which the predicates that are rules are joined, and so are the scores."""
    # Joined predicates report only the first rejection.
    predicates = () if table.check_all else compiled.predicates
    hooks = (table.pre_filters, table.filters)
    predicates = predicates if all(_are_distinct([name for name, _ in each]) for each in hooks) else ()
    scores = compiled.scores if _are_distinct([hook.plugin for hook in table.scores]) else ()
    skips = Skips(predicates, scores)
    return replace(
        table,
        joined_predicates=PredicateMemo(predicates, skips) if predicates else None,
        joined_scores=ScoreMemo(scores, skips) if scores else None,
    )


def _are_distinct(names: list[str]) -> bool:
    """Return whether each name identifies a plugin."""
    return len(set(names)) == len(names)

"""Statements that occur more than once in a profile, and may not."""

from __future__ import annotations

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.rules.block import once
from kdsl.lang.profile_tree import (
    CheckPredicates,
    PredicateList,
    ProfileStatement,
    Reweight,
    SampleSize,
    SchedulerName,
    ScoreList,
    SetParam,
    Tighten,
    UsePreemption,
    UseQueue,
)
from kdsl.lang.tree import Profile


def check_repeats(profile: Profile, diagnostics: list[Diagnostic]) -> None:
    """Report statements that a profile may have once and repeats."""
    for kind, what in (
        (SchedulerName, "scheduler"),
        (CheckPredicates, "check"),
        (SampleSize, "sample"),
        (UseQueue, "queue"),
        (UsePreemption, "preemption"),
        (PredicateList, "predicates"),
        (ScoreList, "scores"),
    ):
        once(diagnostics, [each for each in profile.body if isinstance(each, kind)], what)
    changes: dict[str, list[ProfileStatement]] = {}
    for statement in profile.body:
        match statement:
            case SetParam(rule=rule, param=param):
                changes.setdefault(f"set {rule.text}.{param.text}", []).append(statement)
            case Tighten(name=name):
                changes.setdefault(f"tighten {name.text}", []).append(statement)
            case Reweight(name=name):
                changes.setdefault(f"reweight {name.text}", []).append(statement)
            case _:
                pass
    for what, statements in changes.items():
        once(diagnostics, statements, what)

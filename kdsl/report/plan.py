"""The plan of each profile, for `kdsl check --plan`: the binding times of its rules, their reads and memos.

All of it follows from the reads found by the checker, in the same way as in the back end.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.visible import visible_lines
from kdsl.check.model.rule_set import CheckedPreemption, CheckedProfile, CheckedQueue, RuleSet, WrittenRule
from kdsl.check.views.view import time_of
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.report.tables import table

_HEADER = ("KIND", "RULE", "WEIGHT", "KNOWN WITH", "MEMO", "READS")
_WEIGHT = _HEADER.index("WEIGHT")
_NONE = "-"

Row = tuple[str, str, str, str, str, str]
"""One cell for each column of `_HEADER`."""


def plan_text(rules: RuleSet) -> str:
    """Return one table per profile with its rules in execution order."""
    return "\n\n".join(
        visible_lines((f"profile {profile.qualified}", *table(_HEADER, _rows(profile), right=(_WEIGHT,))))
        for profile in rules.profiles.values()
    )


def _rows(profile: CheckedProfile) -> Iterator[Row]:
    yield _row("queue", profile.queue)
    if profile.preemption is not None:
        yield _row("preemption", profile.preemption)
    for predicate in profile.predicates:
        yield _row("predicate", predicate)
        # Each tightening is a separate program with its own memo.
        yield from (_row("tighten", tightening) for tightening in predicate.tightenings)
    for entry in profile.scores:
        yield _row("score", entry.score, str(entry.weight))


def _row(kind: str, rule: WrittenRule, weight: str = _NONE) -> Row:
    if isinstance(rule, CheckedQueue | CheckedPreemption):
        has_memo = False  # it is asked once per pod, or for other pods every time
    elif rule.plugin:
        return kind, rule.qualified, weight, _NONE, _NONE, f"plugin {rule.plugin}: not known"
    else:
        has_memo = Dependencies.of(rule.reads) is not None
    known_with = time_of(rule.reads).name.lower()
    reads = ", ".join(sorted(rule.reads)) or _NONE
    return kind, rule.qualified, weight, known_with, "yes" if has_memo else "no", reads

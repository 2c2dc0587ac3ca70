"""What of a predicate is decided before any node is looked at: in PreFilter, for all nodes at once."""

from __future__ import annotations

from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedTemplate,
)
from kdsl.lang.tree import Code


def narrows_early(rule: CheckedPredicate) -> bool:
    """Tell whether `narrow to` is decided early: the rule is for all nodes or for none, and what is said of
    an error does not depend on the node.
    """
    on_error = rule.on_error
    is_said = on_error is None or on_error.reason is None or _is_known(on_error.reason)
    return is_said and all(each.time.is_lasting for each in rule.applies)


def split_body(
    rule: CheckedPredicate,
) -> tuple[list[CheckedRequire], list[CheckedRequire | CheckedForEach]]:
    """Return the statements that are decided early, which are the first ones, and the others; no `let`s."""
    early: list[CheckedRequire] = []
    late: list[CheckedRequire | CheckedForEach] = []
    is_early = narrows_early(rule) and not rule.report_all
    for statement in rule.body:
        if isinstance(statement, CheckedLet):
            continue
        if is_early and isinstance(statement, CheckedRequire) and _is_early(statement):
            early.append(statement)
        else:
            is_early = False
            late.append(statement)
    return early, late


def _is_early(statement: CheckedRequire) -> bool:
    # What makes a pod pending must wait for its nodes: PreFilter has no such answer.
    is_known = statement.condition.time.is_lasting and _is_known(statement.reason)
    return is_known and statement.code is not Code.PENDING


def _is_known(text: CheckedTemplate) -> bool:
    return all(isinstance(part, str) or part.time.is_lasting for part in text.parts)

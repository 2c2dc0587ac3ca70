"""The statements of a predicate that PreFilter decides: those that do not depend on the node."""

from __future__ import annotations

from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedLet,
    CheckedPredicate,
    CheckedRequire,
    CheckedTemplate,
)
from kdsl.lang.choices import RejectionCode


def narrows_in_pre_filter(rule: CheckedPredicate) -> bool:
    """Return whether PreFilter decides `narrow to`: the rule applies to all nodes or to none, and the text of
    an error does not depend on the node.
    """
    reason = None if rule.on_error is None else rule.on_error.reason
    return _is_lasting(reason) and all(each.time.is_lasting for each in rule.applies)


def split_body(
    rule: CheckedPredicate,
) -> tuple[list[CheckedRequire], list[CheckedRequire | CheckedForEach]]:
    """Return the leading statements that PreFilter decides, and the others; no `let`s."""
    first: list[CheckedRequire] = []
    others: list[CheckedRequire | CheckedForEach] = []
    is_early = narrows_in_pre_filter(rule) and not rule.report_all
    for statement in rule.body:
        if isinstance(statement, CheckedLet):
            continue
        if is_early and isinstance(statement, CheckedRequire) and _is_in_pre_filter(statement):
            first.append(statement)
        else:
            is_early = False
            others.append(statement)
    return first, others


def _is_in_pre_filter(statement: CheckedRequire) -> bool:
    # PreFilter has no answer that keeps a pod pending.
    is_lasting = statement.condition.time.is_lasting and _is_lasting(statement.reason)
    return is_lasting and statement.code is not RejectionCode.PENDING


def _is_lasting(text: CheckedTemplate | None) -> bool:
    """Return whether a text, if there is one, is the same for all nodes."""
    return text is None or all(hole.time.is_lasting for hole in text.holes)

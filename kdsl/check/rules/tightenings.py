"""`tighten P { … }`: the requirements of a profile in addition to those of an inherited predicate.

A tightening is a predicate of its own, checked at the profile. It runs in addition to the predicate that it
tightens, so that it can only reject more, whatever its statements. The checker creates tightenings,
`profiles/inheritance.py` attaches them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedPredicate
from kdsl.check.names.declarations import Located
from kdsl.check.rules.block import BlockCheck
from kdsl.check.rules.predicates import check_predicate
from kdsl.lang.profile_tree import Tighten
from kdsl.lang.tree import Narrow, Param, Predicate, Profile, Report, RuleStatement

_NOT_HERE = {
    Param: ("param", "nobody could set it", "write the value where it is used, or `let`"),
    Report: ("report", "the predicate itself says how it reports", "leave it out"),
    Narrow: ("narrow to", "the candidates are the predicate's own", "write a predicate and `add` it"),
}


def check_tightenings(
    located: Located[Profile], new_block: Callable[[Span], BlockCheck], diagnostics: list[Diagnostic]
) -> dict[str, CheckedPredicate]:
    """Check the `tighten` blocks of a profile and return the results by the name written in each."""
    found: dict[str, CheckedPredicate] = {}
    for statement in located.declaration.body:
        if isinstance(statement, Tighten) and statement.name.text not in found:
            found[statement.name.text] = _tightening(
                located, statement, new_block(statement.span), diagnostics
            )
    return found


def _tightening(
    located: Located[Profile], statement: Tighten, block: BlockCheck, diagnostics: list[Diagnostic]
) -> CheckedPredicate:
    body = _body(statement.body, diagnostics)
    # A block with invalid statements only has reported errors already.
    if not body and statement.body:
        body = statement.body
    predicate = Predicate(body, name=statement.name, span=statement.span)
    checked = check_predicate(Located(predicate, located.home), block)
    return replace(checked, qualified=f"{located.qualified}/{statement.name.text}")


def _body(body: Sequence[RuleStatement], diagnostics: list[Diagnostic]) -> tuple[RuleStatement, ...]:
    """Return the valid statements of a tightening and report the others."""
    kept: list[RuleStatement] = []
    for statement in body:
        if isinstance(statement, Param | Report | Narrow):
            what, why, help_ = _NOT_HERE[type(statement)]
            title = f"`{what}` cannot stand inside `tighten`"
            diagnostics.append(Diagnostic(CheckCode.MISPLACED, title, statement.span, why, help=(help_,)))
        else:
            kept.append(statement)
    return tuple(kept)

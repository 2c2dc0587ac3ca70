"""Preemptions: the pods that may preempt, their victims, and the choice among several nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedAdmit, CheckedLet, CheckedPreemption, CheckedSortKey, Fns
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import INT
from kdsl.check.names.declarations import Located
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.check.rules.sort_keys import check_sort_keys
from kdsl.check.rules.totality import Totality
from kdsl.lang.tree import (
    Candidates,
    ChooseBy,
    EligibleWhen,
    Let,
    OrderBy,
    Param,
    Preemption,
    VictimWhen,
)

_VISIBLE_IN: Mapping[str, frozenset[str]] = {
    "eligible when": frozenset({"pod", "onNominatedNode"}),
    "victim when": frozenset({"pod", "victim"}),
    "order by": frozenset({"pod", "victim"}),
    "candidates": frozenset({"pod", "potentialNodes"}),
    "choose by": frozenset({"pod", "candidate"}),
}
_ONCE = (
    (VictimWhen, "victim when"),
    (OrderBy, "order by"),
    (Candidates, "candidates"),
    (ChooseBy, "choose by"),
)


def check_preemption(located: Located[Preemption], block: BlockCheck, fns: Fns) -> CheckedPreemption | None:
    """Check one preemption; None without `victim when`. The result is valid only without diagnostics."""
    preemption = located.declaration
    for kind, what in _ONCE:
        once(block.diagnostics, [each for each in preemption.body if isinstance(each, kind)], what)
    visibility = _Visibility(block)
    eligible: list[CheckedAdmit] = []
    victim: TypedExpr | None = None
    candidates: TypedExpr | None = None
    order: tuple[CheckedSortKey, ...] = ()
    choose: tuple[CheckedSortKey, ...] = ()
    for statement in preemption.body:
        match statement:
            case Param():
                block.param(statement)
            case Let():
                visibility.lets.append(block.let(statement))
            case EligibleWhen():
                condition = block.condition(statement.condition, "the condition of `eligible when`")
                reason = block.template(statement.reason, block.guards.when(condition, False))
                holes = (part for part in reason.parts if not isinstance(part, str))
                visibility.check("eligible when", condition, *holes)
                eligible.append(CheckedAdmit(condition, reason, statement.span))
            case VictimWhen():
                victim = block.condition(statement.condition, "the condition of `victim when`")
                visibility.check("victim when", victim)
            case OrderBy(keys=keys):
                order = check_sort_keys(block, keys, Totality(block.guards.lets, fns))
                visibility.check("order by", *(key.value for key in order))
            case Candidates(count=count):
                candidates = block.expression(count, INT, "a number of candidates")
                visibility.check("candidates", candidates)
            case ChooseBy(keys=keys):
                choose = check_sort_keys(block, keys)
                visibility.check("choose by", *(key.value for key in choose))
    if victim is None:
        why = "no pod would ever make room"
        incomplete(block.diagnostics, "preemption", located.name, preemption.name.span, "victim when", why)
        return None
    return CheckedPreemption(
        name=located.name,
        qualified=located.qualified,
        params=tuple(block.params),
        lets=tuple(visibility.lets),
        eligible=tuple(eligible),
        victim=victim,
        order=order,
        candidates=candidates,
        choose=choose,
        reads=block.reads,
        scope=block.scope,
        slots=block.frame.size,
        doc=preemption.doc,
        span=preemption.span,
    )


class _Visibility:
    """The names of the engine that each statement can read.

    There is no victim before one is found, and no candidate before there are victims.
    """

    def __init__(self, block: BlockCheck) -> None:
        self.lets: list[CheckedLet] = []
        self._block = block

    def check(self, statement: str, *exprs: TypedExpr) -> None:
        """Report names that the expressions of a statement, or the `let`s they use, cannot read."""
        visible = _VISIBLE_IN[statement]
        for expr in exprs:
            for name, span in dict(self._used(expr)).items():
                if name not in visible:
                    self._report(statement, name, span, visible)

    def _used(self, expr: TypedExpr) -> Iterator[tuple[str, Span]]:
        names = {variable.slot: name for name, variable in self._block.scope.items()}
        lets = {let.variable.slot: let.value for let in self.lets}
        for part in walk(expr):
            if not isinstance(part, Var):
                continue
            if part.slot in names:
                yield names[part.slot], part.span
            elif part.slot in lets:
                yield from ((name, part.span) for name, _ in self._used(lets[part.slot]))

    def _report(self, statement: str, name: str, span: Span, visible: frozenset[str]) -> None:
        title = f"`{name}` is not known in `{statement}`"
        known = " and ".join(f"`{each}`" for each in sorted(visible, key=list(self._block.scope).index))
        help_ = (f"it can read {known}",)
        self._block.diagnostics.append(
            Diagnostic(CheckCode.NOT_HERE, title, span, "not found yet, or not visible here", help=help_)
        )

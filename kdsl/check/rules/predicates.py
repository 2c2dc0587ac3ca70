"""Predicates: statements that a node must pass, in order, and the reason for a node that does not."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.expressions.macros import declare_variable, not_iterable, ranges_over
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import (
    CheckedForEach,
    CheckedNarrow,
    CheckedOnError,
    CheckedPredicate,
    CheckedRequire,
    CheckedStatement,
)
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import ERROR, STRING, BindingTime, Type, list_of, optional_of
from kdsl.check.names.declarations import Located
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.lang.choices import ErrorAction, RejectionCode
from kdsl.lang.tree import (
    AppliesWhen,
    ForEach,
    Let,
    Narrow,
    OnError,
    Param,
    Predicate,
    Report,
    Require,
    RuleStatement,
)

_NODE_NAMES = optional_of(list_of(STRING))
_TOP_ONLY = {
    AppliesWhen: "applies when",
    Narrow: "narrow to",
    Report: "report",
    OnError: "on error",
    Param: "param",
}


def check_predicate(located: Located[Predicate], block: BlockCheck) -> CheckedPredicate:
    """Check one predicate; the result is valid only where nothing was reported."""
    predicate = located.declaration
    reports = [each for each in predicate.body if isinstance(each, Report)]
    once(block.diagnostics, reports, "report")
    for kind, what in ((Narrow, "narrow to"), (OnError, "on error")):
        once(block.diagnostics, [each for each in predicate.body if isinstance(each, kind)], what)
    if not _rejects(predicate.body):
        why = "it would pass every node"
        incomplete(block.diagnostics, "predicate", located.name, predicate.name.span, "require", why)
    run = _Body(block, report_all=any(report.all for report in reports))
    run.top(predicate.body)
    return CheckedPredicate(
        name=located.name,
        qualified=located.qualified,
        params=tuple(block.params),
        applies=tuple(run.applies),
        narrow=run.narrow,
        body=tuple(run.statements),
        report_all=run.report_all,
        on_error=run.on_error,
        reads=block.reads,
        scope=block.scope,
        slots=block.frame.size,
        doc=predicate.doc,
        span=predicate.span,
    )


def _rejects(body: Sequence[RuleStatement]) -> bool:
    return any(
        isinstance(each, Require | Narrow) or (isinstance(each, ForEach) and _rejects(each.body))
        for each in body
    )


class _Body:
    """The state of checking the statements of one predicate."""

    def __init__(self, block: BlockCheck, report_all: bool) -> None:
        self.report_all = report_all
        self.applies: list[TypedExpr] = []
        self.narrow: CheckedNarrow | None = None
        self.on_error: CheckedOnError | None = None
        self.statements: list[CheckedStatement] = []
        self._has_begun = False
        self._block = block

    def top(self, body: Sequence[RuleStatement]) -> None:
        """Check the statements at the top level of the predicate."""
        for statement in body:
            if self._has_begun and isinstance(statement, AppliesWhen | Narrow | OnError):
                self._block.diagnostics.append(_too_late(_TOP_ONLY[type(statement)], statement.span))
            match statement:
                case Param():
                    self._block.param(statement)
                case AppliesWhen():
                    self.applies.append(self._block.applies(statement, BindingTime.USAGE))
                case Narrow():
                    self.narrow = self._narrow(statement)
                case OnError(action=ErrorAction.ZERO):
                    self._block.diagnostics.append(_zero_in_predicate(statement.span))
                case OnError():
                    self.on_error = self._block.on_error(statement)
                case Report():
                    pass
                case Let() | Require() | ForEach():
                    self._has_begun = self._has_begun or not isinstance(statement, Let)
                    self.statements.append(self._statement(statement, keep=not self.report_all))

    def _statement(self, statement: Let | Require | ForEach, keep: bool) -> CheckedStatement:
        """Check a statement at any depth; with `keep` its requirement is a proof for later statements."""
        match statement:
            case Let():
                return self._block.let(statement)
            case Require():
                return self._require(statement, keep)
            case ForEach():
                return self._for_each(statement)

    def _require(self, statement: Require, keep: bool) -> CheckedRequire:
        condition = self._block.condition(statement.condition, "the condition of `require`")
        reason = self._block.template(statement.reason, self._block.guards.when(condition, False))
        if keep:
            self._block.facts |= self._block.guards.when(condition, True)
        return CheckedRequire(
            condition, statement.code or RejectionCode.UNSCHEDULABLE, reason, statement.span
        )

    def _narrow(self, statement: Narrow) -> CheckedNarrow:
        names = self._block.expression(statement.names, _NODE_NAMES, "the list of `narrow to`")
        self._block.known_by(names, BindingTime.CLUSTER, "`narrow to`")
        reason = self._block.template(statement.reason, frozenset())
        for part in reason.parts:
            if not isinstance(part, str):
                self._block.known_by(part, BindingTime.CLUSTER, "the reason of `narrow to`")
        return CheckedNarrow(names, statement.code or RejectionCode.UNSCHEDULABLE, reason, statement.span)

    def _for_each(self, statement: ForEach) -> CheckedForEach:
        """Check a loop; proofs inside it hold there only, also under `report all`."""
        block = self._block
        iterable = block.expression(statement.iterable)
        types = (
            (ERROR,) * len(statement.names) if iterable.type == ERROR else self._ranges(iterable, statement)
        )
        scope = block.inference.scope.child()
        outer, facts = block.within(scope), block.facts
        variables = tuple(
            declare_variable(block.inference, scope, name.text, name.span, type_, iterable)
            for name, type_ in zip(statement.names, types, strict=True)
        )
        block.facts |= block.guards.ranging(iterable, variables, block.facts)
        where = None
        if statement.where is not None:
            where = block.condition(statement.where, "the condition of `where`")
            block.facts |= block.guards.when(where, True)
        body: list[CheckedStatement] = []
        for inner in statement.body:
            if isinstance(inner, Let | Require | ForEach):
                body.append(self._statement(inner, keep=True))
            else:
                block.diagnostics.append(_not_in_loop(_TOP_ONLY[type(inner)], inner.span))
        block.inference, block.facts = outer, facts
        return CheckedForEach(variables, iterable, where, tuple(body), statement.span)

    def _ranges(self, iterable: TypedExpr, statement: ForEach) -> tuple[Type, ...]:
        types = ranges_over(iterable.type, len(statement.names))
        if types is None:
            self._block.diagnostics.append(not_iterable(iterable))
            return (ERROR,) * len(statement.names)
        return types


def _too_late(what: str, span: Span) -> Diagnostic:
    # Otherwise a `require` would count as a proof where it has not run yet.
    title = f"`{what}` stands behind a `require` or `for`"
    help_ = ("write it before the first of them",)
    return Diagnostic(CheckCode.MISPLACED, title, span, "it holds for those before it, too", help=help_)


def _not_in_loop(what: str, span: Span) -> Diagnostic:
    title = f"`{what}` cannot stand inside `for`"
    help_ = ("write it before the loop",)
    return Diagnostic(CheckCode.MISPLACED, title, span, "it is about the whole predicate", help=help_)


def _zero_in_predicate(span: Span) -> Diagnostic:
    return Diagnostic(
        CheckCode.MISPLACED,
        "`on error zero` is for scores",
        span,
        "a predicate gives no number",
        help=('write `on error reject "reason"` or `on error abort`',),
    )

"""Scores: the value of a node, and the normalisation of the values of all nodes."""

from __future__ import annotations

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.expressions.mismatch import no_number
from kdsl.check.expressions.scope import Scope
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedLet, CheckedNormalize, CheckedOnError, CheckedScore
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import DOUBLE, ERROR, INT, BindingTime, Type
from kdsl.check.names.declarations import Located
from kdsl.check.names.file_names import Construct
from kdsl.check.names.functions import Functions
from kdsl.check.rules.block import BlockCheck, incomplete, once
from kdsl.lang.choices import ErrorAction, Normalization
from kdsl.lang.tree import AppliesWhen, IgnoreWhen, Let, Normalize, OnError, Param, Score, Value

_AFTER_SCORING = ("value", "min", "max")
_FOR_NODES = "`ignore when C` leaves nodes out of a score"


def check_score(located: Located[Score], block: BlockCheck, functions: Functions) -> CheckedScore | None:
    """Check one score; None without a `value`. The result is valid only where nothing was reported."""
    score = located.declaration
    for kind, what in ((Value, "value"), (Normalize, "normalize"), (OnError, "on error")):
        once(block.diagnostics, [each for each in score.body if isinstance(each, kind)], what)
    applies: list[TypedExpr] = []
    ignores: list[TypedExpr] = []
    lets: list[CheckedLet] = []
    value: TypedExpr | None = None
    normalize: Normalize | None = None
    on_error: CheckedOnError | None = None
    for statement in score.body:
        match statement:
            case Param():
                block.param(statement)
            case AppliesWhen():
                applies.append(block.applies(statement, BindingTime.CLUSTER, _FOR_NODES))
            case IgnoreWhen():
                ignores.append(block.ignores(statement))
            case Let():
                lets.append(block.let(statement))
            case Value():
                value = _number(block, block.expression(statement.value), "a score's value")
            case Normalize():
                normalize = statement
            case OnError(action=ErrorAction.REJECT):
                block.diagnostics.append(_reject_in_score(statement.span))
            case OnError():
                on_error = block.on_error(statement)
    if value is None:
        why = "every node would score nothing"
        incomplete(block.diagnostics, "score", located.name, score.name.span, "value", why)
        return None
    return CheckedScore(
        name=located.name,
        qualified=located.qualified,
        params=tuple(block.params),
        applies=tuple(applies),
        ignores=tuple(ignores),
        lets=tuple(lets),
        value=value,
        normalize=_normalize(located, normalize, value.type, block, functions),
        on_error=on_error,
        reads=block.reads,
        scope=block.scope,
        slots=block.frame.size,
        doc=score.doc,
        span=score.span,
    )


def _normalize(
    located: Located[Score], statement: Normalize | None, value: Type, block: BlockCheck, functions: Functions
) -> CheckedNormalize:
    """Check `normalize`; the expression of `by` can read `value`, `min`, `max` and the parameters only."""
    if statement is None:
        return CheckedNormalize(Normalization.NONE, None)
    if statement.by is None:
        return CheckedNormalize(statement.kind, None)
    scope = Scope(block.frame)
    for name in _AFTER_SCORING:
        block.scope[name] = scope.add(name, value, BindingTime.SCORES, frozenset(), statement.span)
    for param in block.params:
        scope.names[param.variable.name] = param.variable
    hidden = frozenset(block.inference.scope.visible()) - scope.names.keys()
    outer = block.inference
    block.inference = functions.inference(located.home, Construct.NORMALIZE, scope, hidden)
    by = _number(block, block.expression(statement.by), "a normalised score")
    block.inference = outer
    return CheckedNormalize(statement.kind, by)


def _number(block: BlockCheck, expr: TypedExpr, what: str) -> TypedExpr:
    if expr.type not in (INT, DOUBLE, ERROR):
        block.diagnostics.append(no_number(expr, what))
    return expr


def _reject_in_score(span: Span) -> Diagnostic:
    return Diagnostic(
        CheckCode.MISPLACED,
        "`on error reject` is for predicates",
        span,
        "a score rejects no node",
        help=("write `on error zero` or `on error abort`",),
    )

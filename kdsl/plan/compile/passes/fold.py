"""Constant folding: parameters become their values, constant parts are computed once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kdsl.check.model.typed import Const, TypedExpr, Var
from kdsl.eval.ir import Known, is_constant, map_children
from kdsl.eval.values import EvalError

if TYPE_CHECKING:
    from kdsl.plan.compile.scope import RuleScope


def fold_constants(expr: TypedExpr, scope: RuleScope) -> TypedExpr:
    """Replace parts that depend on no pod by their values; parts that fail stay."""
    if isinstance(expr, Var) and expr.slot in scope.known:
        return Known.of(expr, scope.known[expr.slot])
    if isinstance(expr, (Const, Var)):
        return expr
    expr = map_children(expr, partial(fold_constants, scope=scope))
    if is_constant(expr):
        try:
            return Known.of(expr, scope.evaluate(expr))
        except EvalError:
            return expr
    return expr

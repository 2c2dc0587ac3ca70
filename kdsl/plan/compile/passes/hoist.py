"""Hoisting: parts that are the same for all nodes are computed once per pod, at first use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kdsl.check.model.typed import CallOf, Comprehension, Const, FieldOf, TypedExpr, Var
from kdsl.check.model.types import BindingTime
from kdsl.eval.ir import map_children
from kdsl.eval.scalar.fast import PLAIN_EQUALITY

if TYPE_CHECKING:
    from kdsl.plan.compile.scope import RuleScope


def hoist_lasting(expr: TypedExpr, scope: RuleScope) -> TypedExpr:
    """Replace the largest parts that do not depend on the node by lazy variables that last as long as the
    pod.

    They are lazy, because a part behind `&&` or `?:` that is never reached must not be computed, let alone
    fail.
    """
    if is_cheap(expr):
        return expr
    if scope.is_lasting(expr):
        return scope.hoist(expr)
    if expr.time is BindingTime.CLUSTER and scope.is_of_items(expr):
        # Each loop item has its own answer, but not each node: reading the whole cluster is expensive.
        return scope.hoist_by_item(expr)
    if isinstance(expr, Comprehension):
        scope.ranges(expr.iterable, expr.variables)
    return map_children(expr, partial(hoist_lasting, scope=scope))


def is_cheap(expr: TypedExpr) -> bool:
    """Return whether computing the expression takes no longer than reading a lazy variable."""
    match expr:
        case Const() | Var() | FieldOf(operand=Var()):
            return True
        case CallOf(overload="index_list", args=(Var(), Const() | Var())):
            return True
        case CallOf(overload="equals" | "not_equals", args=(one, other)) if one.type == other.type:
            return one.type in PLAIN_EQUALITY and is_cheap(one) and is_cheap(other)
    return False

"""Hoisting: what depends on the pod only is computed once for the pod, on first use, not for every node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kdsl.check.typed import Const, FieldOf, TypedExpr, Var
from kdsl.check.types import BindingTime
from kdsl.plan.ir import free_slots, map_children

if TYPE_CHECKING:
    from kdsl.plan.scope import RuleScope


def hoist_pod_time(expr: TypedExpr, scope: RuleScope) -> TypedExpr:
    """Replace the largest parts that are known from the pod alone by lazy variables that last as long as the
    pod.

    Lazy, because a part behind `&&` or `?:` that is never reached must not be computed, let alone fail.
    """
    if _is_cheap(expr):
        return expr
    if expr.time <= BindingTime.POD and free_slots(expr) <= scope.lasting:
        return scope.hoist(expr)
    return map_children(expr, partial(hoist_pod_time, scope=scope))


def _is_cheap(expr: TypedExpr) -> bool:
    """Tell whether computing the expression takes no longer than reading a lazy variable."""
    return isinstance(expr, (Const, Var)) or (isinstance(expr, FieldOf) and isinstance(expr.operand, Var))

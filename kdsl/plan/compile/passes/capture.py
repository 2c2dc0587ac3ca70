"""Captures: the question of a macro of a view is made to depend only on its variable and on named values.

`topology(k).count(p, p.namespace == pod.namespace)` becomes a `cel.bind` of `pod.namespace` around the macro.
Questions of one text differ only in the named values, which are part of the key of a count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kdsl.check.model.typed import Aggregate, Bind, Comprehension, Const, TypedExpr, Var
from kdsl.eval.ir import bound, free_slots, map_children

if TYPE_CHECKING:
    from kdsl.plan.compile.scope import RuleScope


def capture(expr: TypedExpr, scope: RuleScope) -> TypedExpr:
    """Bind, around every macro of a view, the largest parts of its body that do not depend on its variable.

    The pod stays: methods that take it read some of its fields, and those are part of the key of a count.
    """
    expr = map_children(expr, partial(capture, scope=scope))
    if not isinstance(expr, Aggregate):
        return expr
    captured: list[tuple[Var, TypedExpr]] = []
    body = _captured(expr.body, frozenset({expr.variable.slot}), scope, captured)
    result: TypedExpr = replace(expr, body=body)
    for variable, value in captured:
        result = bound(variable, value, result)
    return result


def _captured(
    expr: TypedExpr, inner: frozenset[int], scope: RuleScope, captured: list[tuple[Var, TypedExpr]]
) -> TypedExpr:
    """Replace parts that depend on no `inner` slot by new variables; `captured` gets them, with values."""
    if isinstance(expr, Const) or (isinstance(expr, Var) and expr.type.name == "Pod"):
        return expr
    slots = free_slots(expr)
    if slots and not slots & inner:
        captured.append((scope.variable(expr), expr))
        return captured[-1][0]
    match expr:
        case Comprehension(variables=variables):
            inner |= {variable.slot for variable in variables}
        case Aggregate(variable=variable) | Bind(variable=variable):
            inner |= {variable.slot}
        case _:
            pass
    return map_children(expr, partial(_captured, inner=inner, scope=scope, captured=captured))

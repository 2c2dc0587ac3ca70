"""Inlining: a call of a function of a rule file becomes its body, so that parts of the body can be hoisted.

Only devices use it: their functions take `pod.annotations` as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kdsl.check.model.rule_set import ExternalFn, Fns
from kdsl.check.model.typed import Aggregate, Bind, CallFn, Comprehension, Const, FieldOf, TypedExpr, Var
from kdsl.eval.ir import bound, map_children

DEPTH = 3
"""The deepest nesting of inlined calls; deeper ones stay calls, so that the text stays small."""

Substitutes = Mapping[int, TypedExpr]
"""The replacements of variables, by slot."""


def inline_calls(
    expr: TypedExpr,
    fns: Fns,
    names: Collection[int] | None,
    variable: Callable[[TypedExpr], Var],
    depth: int = DEPTH,
) -> TypedExpr:
    """Replace calls whose arguments are constants, `names` (slots that are always filled) or fields of those.

    Such arguments always have a value, so the time of reading does not matter. Without `names` all calls are
    replaced: the result is for its reads, and must not be run. `variable` makes new variables.
    """
    expr = map_children(expr, lambda part: inline_calls(part, fns, names, variable, depth))
    if not isinstance(expr, CallFn) or not depth:
        return expr
    fn = fns[expr.fn]
    if isinstance(fn, ExternalFn) or not (names is None or all(is_plain(arg, names) for arg in expr.args)):
        return expr
    args = {param.slot: arg for param, arg in zip(fn.params, expr.args, strict=True)}
    body = inline_calls(substitute(fn.body, args, variable), fns, names, variable, depth - 1)
    if names is None:
        # A call computes its arguments even where its body does not, and fails with them.
        for param, arg in zip(fn.params, expr.args, strict=True):
            if not is_plain(arg):
                body = bound(variable(param), arg, body)
    return body


def substitute(expr: TypedExpr, by: Substitutes, variable: Callable[[TypedExpr], Var]) -> TypedExpr:
    """Return the expression with some variables replaced, and new variables for those it binds; itself if it
    has neither.

    Its binding time and reads follow from its parts.
    """
    own: TypedExpr = expr
    match expr:
        case Var(slot=slot):
            return by.get(slot, expr)
        case Const():
            return expr
        case Comprehension(variables=variables):
            new = {each.slot: _renamed(each, variable) for each in variables}
            own = replace(expr, variables=tuple(new.values()))
            by = {**by, **new}
        case Bind(variable=named) | Aggregate(variable=named):
            renamed = _renamed(named, variable)
            own = replace(expr, variable=renamed)
            by = {**by, named.slot: renamed}
        case _:
            pass
    parts: list[TypedExpr] = []

    def change(part: TypedExpr) -> TypedExpr:
        parts.append(substitute(part, by, variable))
        return parts[-1]

    changed = map_children(own, change)
    if changed is expr:
        return expr
    time = max([part.time for part in parts], default=expr.time)
    if isinstance(expr, CallFn):
        time = max(time, expr.time)
    reads = expr.reads.union(*[part.reads for part in parts])
    if time is changed.time and reads == changed.reads:
        return changed
    return replace(changed, time=time, reads=reads)


def _renamed(named: Var, variable: Callable[[TypedExpr], Var]) -> Var:
    return replace(named, slot=variable(named).slot)


def is_plain(arg: TypedExpr, names: Collection[int] | None = None) -> bool:
    """Return whether an argument always has a value, as `names` have, or all variables without `names`."""
    match arg:
        case Const():
            return True
        case Var(slot=slot) | FieldOf(operand=Var(slot=slot)):
            return names is None or slot in names
    return False

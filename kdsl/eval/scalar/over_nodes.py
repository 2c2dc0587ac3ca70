"""`filter` and `map` over nodes: all nodes at once if possible, else one by one."""

from __future__ import annotations

from collections.abc import Callable

from kdsl.check.model.typed import Aggregate, Comprehension, Macro, TypedExpr
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar.frame import Closure, Compile, Frame
from kdsl.eval.scalar.logic import checked_truth
from kdsl.eval.scalar.meter import spend
from kdsl.eval.values import Value

AtOnce = Callable[[Frame, NodeList], Value]
"""Returns the result of a macro for some nodes; None if it needs one node at a time."""


Needs = Callable[[TypedExpr], frozenset[int]]
"""Returns the variables that an expression reads."""

Lower = Callable[[Comprehension | Aggregate, Compile, Needs, int | None], AtOnce]
"""Compiles a macro for all nodes at once; values that the nodes share are compiled by the compiler that it is
given. A macro of a view is compiled as a `filter`. The number is the slot in which the answer that all nodes
give to a filter is kept, if any.
"""


def is_over_nodes(expr: Comprehension) -> bool:
    """Return whether a macro may be evaluated for all nodes at once."""
    is_plain = expr.macro is Macro.FILTER or (expr.macro is Macro.MAP and expr.where is None)
    item = expr.iterable.type.args[:1]
    return is_plain and bool(item) and item[0].name in ("Node", "AnyNode") and len(expr.variables) == 1


def compile_over_nodes(
    expr: Comprehension, compile: Compile, needs: Needs, lower: Lower, answer_slot: int | None
) -> Closure:
    """Compile a macro over nodes."""
    iterable, slot = compile(expr.iterable), expr.variables[0].slot
    is_filter = expr.macro is Macro.FILTER
    body = compile(expr.body)
    at_once: AtOnce | None = None

    def evaluate(frame: Frame) -> Value:
        nonlocal at_once
        nodes = iterable(frame)
        if nodes.__class__ is NodeList:
            if at_once is None:
                at_once = lower(expr, compile, needs, answer_slot)
            found = at_once(frame, nodes)
            if found is not None:
                return found
        spend(frame, len(nodes))
        results: list[Value] = []
        for node in nodes:
            frame[slot] = node
            if not is_filter:
                results.append(body(frame))
            elif checked_truth(body(frame)):
                results.append(node)
        return tuple(results)

    return evaluate

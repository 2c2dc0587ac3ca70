"""Macros over nodes, and filters of all pods: all at once if possible, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kdsl.check.model.typed import Aggregate, Comprehension, FieldOf, Macro, TypedExpr, Var
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar.comprehensions import comprehension_lines
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import Value

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

AtOnce = Callable[[Frame, Value], Value]
"""Returns a macro's result for a `NodeList` or the pods of a `Cluster`; None if it needs one at a time."""

Needs = Callable[[TypedExpr], frozenset[int]]
"""Returns the variables that an expression reads."""

Lower = Callable[[Comprehension | Aggregate, "Compiler", int | None], AtOnce]
"""Compiles a macro for all nodes, or for all placed pods, at once. Values that they share are compiled by the
compiler that it is given. A macro of a view and a quantifier are compiled as a `filter`. The number is the
slot in which the answer that all nodes give to a filter is kept, if any.
"""

QUANTIFIERS: Final[Mapping[Macro, Callable[[int, int], bool]]] = {
    Macro.ALL: lambda chosen, all_: chosen == all_,
    Macro.EXISTS: lambda chosen, _: chosen > 0,
    Macro.EXISTS_ONE: lambda chosen, _: chosen == 1,
}
"""Whether a macro holds, by the number of nodes for which its condition does, and the number of all."""

_LEAST_PAYING: Final = 16
"""At least one in so many nodes pays for a quantifier at once: the work of all is done."""


def is_over_nodes(expr: Comprehension) -> bool:
    """Return whether a macro may be evaluated for all nodes at once."""
    item = expr.iterable.type.args[:1]
    if not item or item[0].name not in ("Node", "AnyNode") or len(expr.variables) != 1:
        return False
    if expr.macro in QUANTIFIERS:
        # If some node fails, the list is evaluated again.
        return isinstance(expr.iterable, (FieldOf, Var))
    return expr.macro is Macro.FILTER or (expr.macro is Macro.MAP and expr.where is None)


def is_over_pods(expr: Comprehension) -> bool:
    """Return whether a macro filters the pods of the cluster."""
    match expr:
        case Comprehension(
            macro=Macro.FILTER, iterable=FieldOf(operand=cluster, field="pods"), variables=[_]
        ):
            return cluster.type.name == "Cluster"
    return False


def compile_at_once(expr: Comprehension, out: Compiler) -> Closure:
    """Compile a macro that `is_over_nodes` or `is_over_pods`. Its form for all at once is compiled when it is
    first used.
    """
    source, items, asks_pods = expr.iterable, "r", is_over_pods(expr)
    if asks_pods:
        assert isinstance(source, FieldOf)
        source, items = source.operand, "r.pods"
    read = out.compile(source)
    one_by_one = out.block(lambda inner: comprehension_lines(expr, inner, items))
    answer_slot = None if asks_pods or out.answer_slot is None else out.answer_slot(expr)
    is_quantifier = expr.macro in QUANTIFIERS
    at_once: AtOnce | None = None

    def evaluate(frame: Frame) -> Value:
        nonlocal at_once
        values = read(frame)
        if asks_pods or values.__class__ is NodeList:
            if at_once is None:
                assert out.lower is not None
                at_once = out.lower(expr, out, answer_slot)
            meter: Meter = frame[-1]
            before = meter.left
            found = at_once(frame, values)
            if is_quantifier:
                paid, meter.left = before - meter.left, before
                if found is not None:
                    return _quantified(expr.macro, found, values, paid, meter)
            elif found is not None:
                return found
        return one_by_one(frame, values)

    return evaluate


def _quantified(macro: Macro, chosen: Sequence[Value], nodes: NodeList, paid: int, meter: Meter) -> bool:
    """Return the answer of a quantifier. `chosen` are the nodes that hold, `paid` the steps of all nodes. One
    by one, a node after the one that decides takes no steps but the first.
    """
    later = len(nodes) - max(_visited(macro, chosen, nodes), len(nodes) // _LEAST_PAYING)
    meter.left -= paid - later * (paid // len(nodes) - 1)
    return QUANTIFIERS[macro](len(chosen), len(nodes))


def _visited(macro: Macro, chosen: Sequence[Value], nodes: NodeList) -> int:
    """Return the number of nodes that a quantifier visits one by one; `chosen` are those that hold."""
    if macro is Macro.EXISTS_ONE or len(chosen) == (len(nodes) if macro is Macro.ALL else 0):
        return len(nodes)
    held = np.isin(nodes.nodes.rows, chosen.nodes.rows) if isinstance(chosen, NodeList) else np.zeros(1, bool)
    return int(np.argmax(held if macro is Macro.EXISTS else ~held)) + 1

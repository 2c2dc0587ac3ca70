"""Macros over nodes, and filters of all pods: all at once if possible, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kdsl.check.model.typed import Aggregate, Comprehension, FieldOf, Macro, TypedExpr, Var
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.scalar.logic import checked_truth
from kdsl.eval.scalar.meter import Meter, spend
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


def compile_over_pods(expr: Comprehension, out: Compiler, one_by_one: Closure) -> Closure:
    """Compile a filter of the pods of the cluster; `one_by_one` is the macro over any list."""
    assert isinstance(expr.iterable, FieldOf)
    cluster = out.compile(expr.iterable.operand)
    at_once = _lowered_when_used(expr, out, None)

    def evaluate(frame: Frame) -> Value:
        found = at_once(frame, cluster(frame))
        return one_by_one(frame) if found is None else found

    return evaluate


def _lowered_when_used(expr: Comprehension, out: Compiler, answer_slot: int | None) -> AtOnce:
    """Return a macro for all nodes at once, which is compiled at its first use."""
    at_once: AtOnce | None = None

    def evaluate(frame: Frame, nodes: Value) -> Value:
        nonlocal at_once
        if at_once is None:
            assert out.lower is not None
            at_once = out.lower(expr, out, answer_slot)
        return at_once(frame, nodes)

    return evaluate


def compile_over_nodes(expr: Comprehension, out: Compiler, answer_slot: int | None) -> Closure:
    """Compile `filter` or `map` over nodes."""
    iterable, slot = out.compile(expr.iterable), expr.variables[0].slot
    is_filter = expr.macro is Macro.FILTER
    body = out.compile(expr.body)
    at_once = _lowered_when_used(expr, out, answer_slot)

    def evaluate(frame: Frame) -> Value:
        nodes = iterable(frame)
        if nodes.__class__ is NodeList:
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


def compile_quantifier(
    expr: Comprehension, out: Compiler, answer_slot: int | None, one_by_one: Closure
) -> Closure:
    """Compile one of `QUANTIFIERS` over nodes; `one_by_one` is the macro over any list."""
    iterable, macro = out.compile(expr.iterable), expr.macro
    holds = QUANTIFIERS[macro]
    at_once = _lowered_when_used(expr, out, answer_slot)

    def evaluate(frame: Frame) -> Value:
        nodes = iterable(frame)
        if nodes.__class__ is NodeList:
            meter: Meter = frame[-1]
            before = meter.left
            chosen = at_once(frame, nodes)
            paid, meter.left = before - meter.left, before
            if chosen is not None:
                # One by one, a node after the one that decides takes no steps but the first.
                later = len(nodes) - max(_visited(macro, chosen, nodes), len(nodes) // _LEAST_PAYING)
                meter.left -= paid - later * (paid // len(nodes) - 1)
                return holds(len(chosen), len(nodes))
        return one_by_one(frame)

    return evaluate


def _visited(macro: Macro, chosen: Sequence[Value], nodes: NodeList) -> int:
    """Return the number of nodes that a quantifier visits one by one; `chosen` are those that hold."""
    if macro is Macro.EXISTS_ONE or len(chosen) == (len(nodes) if macro is Macro.ALL else 0):
        return len(nodes)
    held = np.isin(nodes.nodes.rows, chosen.nodes.rows) if isinstance(chosen, NodeList) else np.zeros(1, bool)
    return int(np.argmax(held if macro is Macro.EXISTS else ~held)) + 1

"""Macros over nodes as closures over columns, such as `feasible.filter(n, …)`.

The variable of the macro is the node. Its other inputs, also those of the node that the rule judges, are the
same for all nodes of the list.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from msgspec import Struct

from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, Comprehension, Macro, TypedExpr, Var
from kdsl.cluster.snapshot.fact_columns import FactColumns
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot, SharedState
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.ir import free_slots
from kdsl.eval.nodelist import NodeList, StringList
from kdsl.eval.scalar import Closure, Compiler, Frame
from kdsl.eval.scalar.logic import checked_truth
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.over_nodes import AtOnce, is_over_pods
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import batch_of, is_worth_columns
from kdsl.plan.columns.column import AllBad, Coded, Column, ColumnValue, NotColumnar, Same, bad_of
from kdsl.plan.columns.compiler import Lowering
from kdsl.plan.columns.equal_pods import filter_of_pods
from kdsl.plan.columns.fields import amount_read
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.node_groups import Collect, collected_reads
from kdsl.plan.columns.node_reads import NodeReadsCompiler, unclear
from kdsl.plan.columns.scope import BodyColumns
from kdsl.plan.compile.scope import CompiledFunctions


def lower_macro(
    functions: CompiledFunctions, expr: Comprehension | Aggregate, out: Compiler, answer_slot: int | None
) -> AtOnce:
    """Lower a macro over nodes, or one of a view that chooses nodes, all but `map` as `filter`; or a filter
    of all placed pods.
    """
    if isinstance(expr, Comprehension) and is_over_pods(expr):
        return filter_of_pods(functions, expr, out)
    is_of_view = isinstance(expr, Aggregate)
    variable = expr.variable if isinstance(expr, Aggregate) else expr.variables[0]
    node = variable.slot
    read = [part for part in walk(expr.body) if isinstance(part, Var)]
    inner = frozenset(part.slot for part in read) - free_slots(expr.body) | {node}
    scope = BodyColumns(functions, node, inner, out.compile, out.needs)
    scope.lowered.is_of_macro = True
    body = Lowering(scope).lower(expr.body)
    is_filter = is_of_view or expr.macro is not Macro.MAP
    result = _filtered if is_filter else _resource_reader(expr.body, node) or _listed
    # A hoisted part may hide that it reads the node.
    may_be_equal = is_filter and not any(part.slot != node and node in out.needs(part) for part in read)
    collect = NodeReadsCompiler(scope).compile(expr.body) if may_be_equal else unclear
    condition = out.compile(expr.body)

    def at_once(frame: Frame, nodes: NodeList) -> Value:
        chosen = nodes.nodes
        # A what-if pays what the scalar back end pays for each node.
        if not is_worth_columns(chosen) or chosen.snapshot.is_overlay:
            return None
        answer = None if answer_slot is None else frame[answer_slot]
        if answer.__class__ is _Answer and answer.is_of(chosen.snapshot.live):
            return _filtered_by(answer, nodes, frame[-1])
        # A variable that runs out of these steps must not stay failed.
        own = frame.copy()
        if _are_equal(chosen, collect, own):
            answer = _answer_of_first(condition, node, chosen, own)
            if answer_slot is not None:
                frame[answer_slot] = answer
            return None if answer is None else _filtered_by(answer, nodes, frame[-1])
        value = _evaluate(body, chosen, own)
        if value is None or bad_of(value) is not None:
            # Some node fails: evaluating one by one finds the first.
            return None
        return result(value, chosen)

    return at_once


def _resource_reader(expr: TypedExpr, node: int) -> Callable[[ColumnValue, NodeSet], Value] | None:
    """Return a reader of the quantities of each node if an expression reads one resource of the node, and
    nothing else. Columns lack the form in which a quantity is written.
    """
    amount = amount_read(expr, node)
    if amount is None:
        return None
    read, name = attrgetter(attribute_of(amount[0])), amount[1]
    return lambda value, nodes: tuple(
        [each[name] for each in map(read, nodes.snapshot.live.infos(nodes.rows))]
    )


def _are_equal(nodes: NodeSet, collect: Collect | None, frame: Frame) -> bool:
    """Return whether a condition is known to read equal values of all nodes; `collect` adds its reads."""
    if collect is None or collect is unclear:
        return collect is None
    reads = collected_reads(collect, frame)
    return reads is not None and reads.are_equal(FactColumns.of(nodes.snapshot.live))


class _Answer(Struct, frozen=True):
    """The answer that all nodes give to a condition, and the steps that each pays, as long as the nodes have
    the same facts.
    """

    holds: bool
    steps: int
    shared: SharedState
    position: int

    def is_of(self, live: LiveSnapshot) -> bool:
        return self.position == live.fact_changes.position and self.shared is live.shared_state


def _answer_of_first(condition: Closure, slot: int, nodes: NodeSet, frame: Frame) -> _Answer | None:
    """Return the answer of the first of some nodes, which stands for all; None if it fails."""
    meter = frame[-1] = Meter.of(frame[-1].left // len(nodes) - 1)
    if meter.limit < 0:
        return None
    frame[slot] = nodes.snapshot.info(nodes.rows.item(0))
    try:
        holds = checked_truth(condition(frame))
    except EvalError:
        return None
    live = nodes.snapshot.live
    return _Answer(holds, meter.limit - meter.left, live.shared_state, live.fact_changes.position)


def _filtered_by(answer: _Answer, nodes: NodeList, meter: Meter) -> Value:
    """Filter nodes by the answer of all; all pay for it. None if there are too few steps."""
    steps = len(nodes.nodes.rows) * (1 + answer.steps)
    if steps > meter.left:
        return None
    meter.left -= steps
    return nodes if answer.holds else ()


@np.errstate(all="ignore")
def _evaluate(body: ColumnClosure, nodes: NodeSet, frame: Frame) -> ColumnValue | None:
    """Return the value of the body for each node; None if unknown. All nodes pay the highest cost of one."""
    outer: Meter = frame[-1]
    count = len(nodes.rows)
    share = outer.left // count - 1
    if share < 1:
        # Almost nothing is left. One by one, no node is visited without a step for it.
        return None
    own = frame[-1] = Meter(share, share, is_of_each=True)
    try:
        value = body(batch_of(nodes, frame))
    except (AllBad, NotColumnar):
        return None
    finally:
        frame[-1] = outer
    outer.spend(count * (1 + own.limit - own.left))
    return value


def _filtered(value: ColumnValue, nodes: NodeSet) -> Value:
    match value:
        case Same(value=True):
            return NodeList(nodes)
        case Same(value=False):
            return ()
        case Column(values=values) if values.dtype == np.bool_:
            return NodeList(nodes if values.all() else nodes.take(values))
    return None


def _listed(value: ColumnValue, nodes: NodeSet) -> Value:
    match value:
        case Same(value=only):
            return (only,) * len(nodes)
        case Column(values=values, scale=0):
            return tuple(values.tolist())
        case Coded(codes=codes, values=known) if {*map(type, known)} == {str}:
            return StringList(known, codes)
        case Coded(codes=codes, values=known):
            return tuple([known[code] for code in codes.tolist()])
    return None

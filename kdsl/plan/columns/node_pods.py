"""Counts of each node's pods for which a condition holds, and sums of their values.

If a selector or an equality in the condition decides for all other pods, only those that it leaves are asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
from msgspec import Struct

from kdsl.base.quantity import NANOS_PER_MILLI, Quantity
from kdsl.check.model.typed import (
    CallOf,
    Comprehension,
    FieldOf,
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import QUANTITY
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import INT_MAX, EvalError
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Column, ColumnValue, NotColumnar, Same
from kdsl.plan.columns.equal_pods import Candidates, equal_pods, selected_pods
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.scope import Context
from kdsl.plan.counts.pod_index import Located

_MILLI: Final = 1_000
"""The scale of amounts in thousandths."""


def macro_over_pods(expr: Comprehension, at: Context) -> ColumnClosure | None:
    """Lower `all`, `exists` or `exists_one` over the pods of the node, or the number of pods that `filter`
    keeps; None if any pod may decide.
    """
    kept = _kept_pods(expr, at)
    if kept is None:
        return None
    answer = _ANSWERS[expr.macro]

    def evaluate(batch: Batch) -> ColumnValue:
        found = kept(batch)
        if found is None:
            return Same(answer(0))
        batch.spend(found.most_pods * found.steps)
        counts = np.bincount(found.rows, minlength=len(batch.snapshot.names))
        return Column(answer(counts.take(batch.rows)))

    return evaluate


_ANSWERS: Final[Mapping[Macro, Callable[[Any], Any]]] = {
    Macro.ALL: lambda count: count == 0,
    Macro.EXISTS: lambda count: count > 0,
    Macro.EXISTS_ONE: lambda count: count == 1,
    Macro.FILTER: lambda count: count,
}
"""The answer of a macro, by the number of pods for which its condition holds; of `all`, does not hold."""


def sum_over_pods(expr: CallOf, at: Context) -> ColumnClosure | None:
    """Lower a sum of integers or quantities, `node.pods.filter(p, …).map(p, …).sum()`; None for others."""
    match expr:
        case CallOf(
            overload="list_sum_int" | "list_sum_quantity",
            args=(
                Comprehension(
                    macro=Macro.MAP,
                    variables=(Var(slot=slot),),
                    iterable=Comprehension(macro=Macro.FILTER) as pods,
                    where=None,
                    body=body,
                ),
            ),
        ) if not at.scope.reads_node(at.scope.needs(body) - {slot}):
            kept = _kept_pods(pods, at, body)
        case _:
            return None
    if kept is None:
        return None
    value, is_amount = at.scope.closure(body), expr.type == QUANTITY

    def add(batch: Batch) -> ColumnValue:
        found = kept(batch)
        if found is None:
            return Same(Quantity.of(0) if is_amount else 0)
        frame, limit, most = found.frame, batch.frame[-1].left, 0
        sums, sizes = defaultdict[int, int](int), defaultdict[int, int](int)
        for row, pod in zip(found.rows, found.pods, strict=True):
            frame[slot], frame[-1] = pod, Meter.of(limit)
            try:
                number = value(frame)
            except EvalError:
                raise NotColumnar from None
            if is_amount:
                number = number.nanos
            sums[row] += number
            sizes[row] += abs(number)
            most = max(most, limit - frame[-1].left)
        # Each pod that is kept is visited by `map`, its value by `sum`.
        batch.spend(found.most_pods * (found.steps + most + 2))
        unit = NANOS_PER_MILLI if is_amount else 1
        if any(total % unit for total in sums.values()):
            raise NotColumnar
        # No sum of some of the values is out of range, either.
        if max(sizes.values(), default=0) // unit >= INT_MAX:
            raise NotColumnar
        totals = np.zeros(len(batch.snapshot.names), np.int64)
        for row, total in sums.items():
            totals[row] = total // unit
        return Column(totals.take(batch.rows), None, _MILLI if is_amount else 0)

    return add


def is_pods_of(expr: TypedExpr, node: int) -> bool:
    """Return whether an expression is the pods of the node in a slot."""
    match expr:
        case FieldOf(operand=Var(slot=slot), field="pods"):
            return slot == node
    return False


class _Kept(Struct, eq=False):
    """The pods that a macro keeps, with their rows. `frame` has the values of the variables around it.

    A pod takes at most so many `steps`, and no node has more pods than `most_pods`.
    """

    rows: list[int]
    pods: list[PodInfo]
    frame: Frame
    steps: int
    most_pods: int


def _kept_pods(
    expr: Comprehension, at: Context, used: TypedExpr | None = None
) -> Callable[[Batch], _Kept | None] | None:
    """Return a function to the pods of asked nodes for which the condition of a macro holds, of `all` those
    for which it does not; None if there is none. It returns None if no asked node has pods. `used` is a
    further expression that is evaluated with the frame.
    """
    if not is_pods_of(expr.iterable, at.node) or len(expr.variables) != 1:
        return None
    slot, sought = expr.variables[0].slot, expr.macro is not Macro.ALL
    needs = at.scope.needs(expr.body) - {slot}
    candidates_of = None if at.scope.reads_node(needs) else _candidates(expr, sought, at, used)
    if candidates_of is None:
        return None
    more = frozenset() if used is None else at.scope.needs(used)
    captured = sorted((needs | more) & at.captured)
    condition = at.scope.closure(expr.body)

    def keep(batch: Batch) -> _Kept | None:
        snapshot = batch.snapshot
        if not isinstance(snapshot, LiveSnapshot) or not isinstance(batch.rows, np.ndarray):
            raise NotColumnar
        frame = batch.frame.copy()
        for each in captured:
            value = batch.columns.get(each)
            if not isinstance(value, Same):
                raise NotColumnar
            frame[each] = value.value
        limit = batch.frame[-1].left
        found, most = candidates_of(snapshot, frame, batch.rows)
        most_pods = int(snapshot.pod_counts.take(batch.rows).max(initial=0))
        if not most_pods:
            return None
        asked = np.zeros(len(snapshot.names), np.bool_)
        asked[batch.rows] = True
        is_asked = asked.take(np.array([row for row, _ in found], np.intp)).tolist()
        rows, pods = list[int](), list[PodInfo]()
        # Another pod takes no more than `most` steps, or those of one of these; if there is none, of any pod.
        for row, pod in list(compress(found, is_asked)) or _some_pod(snapshot):
            frame[slot], frame[-1] = pod, Meter.of(limit)
            try:
                if condition(frame) is sought:
                    rows.append(row)
                    pods.append(pod)
            except EvalError:
                raise NotColumnar from None
            most = max(most, limit - frame[-1].left)
        return _Kept(rows, pods, frame, most + 1, most_pods)

    return keep


def _candidates(expr: Comprehension, sought: bool, at: Context, used: TypedExpr | None) -> Candidates | None:
    """Return the placed pods for which the condition of a macro may have the sought answer; None if the
    scalar back end has to ask all pods.
    """
    (variable,) = expr.variables
    selector = selector_of(expr.body, variable, at.scope.functions.fns, at.scope.closure) if sought else None
    if selector is not None:
        return selected_pods(selector)
    candidates = equal_pods(expr.body, sought, variable.slot, at)
    # Without a further expression the scalar back end is as fast. In a macro over nodes, all of them would
    # take the steps of the one with the most pods, and the rule could run out later.
    asks_all = used is not None and not at.scope.lowered.is_of_macro
    return _all_pods if candidates is None and asks_all else candidates


def _some_pod(snapshot: LiveSnapshot) -> list[Located]:
    row = int(snapshot.pod_counts.argmax())
    return [(row, snapshot.info(row).pods[0])]


def _all_pods(snapshot: LiveSnapshot, frame: Frame, rows: Rows) -> tuple[Sequence[Located], int]:
    """Return all pods of the asked nodes."""
    nodes = zip(rows.tolist(), snapshot.infos(rows), strict=True)
    return [(row, pod) for row, node in nodes for pod in node.pods], 0

"""Counts of each node's pods for which a condition holds, over the pods of a deciding selector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdsl.check.model.typed import Comprehension, FieldOf, Macro, Var
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar import Closure
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import EvalError
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Column, ColumnValue, NotColumnar, Same
from kdsl.plan.columns.context import Context
from kdsl.plan.columns.logic import Operand
from kdsl.plan.counts.store import TallyStore


def pods_of_node(expr: Comprehension, at: Context) -> Operand | None:
    """Lower the number of pods of the node that a filter keeps; None if no selector decides it."""
    match expr.iterable, expr.variables:
        case FieldOf(operand=Var(slot=node), field="pods"), [variable] if (
            node == at.node and expr.macro is Macro.FILTER
        ):
            pass
        case _:
            return None
    needs = at.rule.needs(expr.body) - {variable.slot}
    if at.rule.reads_node(needs):
        return None
    selector = selector_of(expr.body, variable, at.rule.functions.fns, at.rule.closure)
    if selector is None:
        return None
    return count_selected(variable.slot, sorted(needs & at.captured), at.rule.closure(expr.body), selector)


def count_selected(slot: int, captured: Sequence[int], condition: Closure, selector: Closure) -> Operand:
    """Return how many pods of the node a condition on the pod in `slot` holds for. `captured` are the slots
    of variables around it; `selector` gives the term or constraint that decides.
    """

    def count(batch: Batch) -> ColumnValue:
        snapshot = batch.snapshot
        if not isinstance(snapshot, LiveSnapshot) or not isinstance(batch.rows, np.ndarray):
            raise NotColumnar
        frame = batch.frame.copy()
        for each in captured:
            value = batch.columns.get(each)
            if not isinstance(value, Same):
                raise NotColumnar
            frame[each] = value.value
        decider = selector(frame)
        if not isinstance(decider, (PodAffinityTerm, SpreadConstraint)) or decider.selector is None:
            raise NotColumnar
        found = TallyStore.of(snapshot).matching(decider.selector)
        if found is None:
            raise NotColumnar
        pods = int(snapshot.pod_counts.take(batch.rows).max(initial=0))
        if not pods:
            return Same(0)
        counts, limit, most = np.zeros(len(snapshot.names), np.int64), batch.frame[-1].left, 0
        # A pod that is not selected takes no more steps than a selected one; if none is selected, any pod
        # gives the number.
        for row, pod in found or _some_pod(snapshot):
            frame[slot], frame[-1] = pod, Meter.of(limit)
            try:
                counts[row] += condition(frame) is True
            except EvalError:
                raise NotColumnar from None
            most = max(most, limit - frame[-1].left)
        batch.spend(pods * (most + 1))
        return Column(counts.take(batch.rows))

    return count


def _some_pod(snapshot: LiveSnapshot) -> list[tuple[int, PodInfo]]:
    row = int(snapshot.pod_counts.argmax())
    return [(row, snapshot.info(row).pods[0])]

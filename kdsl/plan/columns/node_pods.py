"""Counts of each node's pods for which a condition holds, and sums of their values.

If a selector or an equality in the condition decides for all other pods, only those that it leaves are asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct

from kdsl.base.quantity import NANOS_PER_MILLI, Quantity
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    Macro,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import QUANTITY, STRING, Type
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.ir import free_slots, is_test, looked_up, operands
from kdsl.eval.scalar import Closure, Compiler, Frame
from kdsl.eval.scalar.logic import checked_truth
from kdsl.eval.scalar.meter import Meter, has_weight, steps_of_value
from kdsl.eval.scalar.over_nodes import AtOnce
from kdsl.eval.scalar.pod_keys import PodFact
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import INT_MAX, EvalError, Optional, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Column, ColumnValue, NotColumnar, Same
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.rule import BodyColumns, Context
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.counts.pod_index import Posting
from kdsl.plan.counts.store import TallyStore

Candidates: TypeAlias = Callable[[LiveSnapshot, Frame, Rows], tuple[Sequence[tuple[int, PodInfo]], int]]
"""Returns the placed pods for which a condition may have the sought answer on some rows at least, with their
rows, and a number of steps: another pod takes no more than that, or than one of these.
"""

_MILLI: Final = 1_000
"""The scale of amounts in thousandths."""
_STRINGS: Final = Type("list", (STRING,))
_MAP: Final = Type("map", (STRING, STRING))


def quantifier_of_pods(expr: Comprehension, at: Context) -> Operand | None:
    """Lower `all`, `exists` or `exists_one` over the pods of the node; None if any pod may decide."""
    count = count_of_pods(expr, at)
    if count is None:
        return None

    holds = _HOLDS[expr.macro]

    def evaluate(batch: Batch) -> ColumnValue:
        value = count(batch)
        if isinstance(value, Same):
            return Same(holds(value.value))  # no pods
        assert isinstance(value, Column)
        return Column(holds(value.values))

    return evaluate


_HOLDS: Final[Mapping[Macro, Callable[[Any], Any]]] = {
    Macro.ALL: lambda count: count == 0,
    Macro.EXISTS: lambda count: count > 0,
    Macro.EXISTS_ONE: lambda count: count == 1,
}
"""Whether a macro holds, by the number of pods that `count_of_pods` returns."""


def count_of_pods(expr: Comprehension, at: Context) -> Operand | None:
    """Lower the number of pods of the node for which the condition of a macro holds, of `all` those for which
    it does not hold; None if it cannot be lowered.
    """
    kept = _kept_pods(expr, at)
    if kept is None:
        return None

    def count(batch: Batch) -> ColumnValue:
        found = kept(batch)
        if found is None:
            return Same(0)
        batch.spend(found.most_pods * found.steps)
        return Column(np.bincount(found.rows, minlength=len(batch.snapshot.names)).take(batch.rows))

    return count


def sum_over_pods(expr: CallOf, at: Context) -> Operand | None:
    """Lower a sum of integers or quantities, `node.pods.filter(p, …).map(p, …).sum()`; None for others."""
    match expr:
        case CallOf(
            overload="list_sum_int" | "list_sum_quantity",
            args=(
                Comprehension(
                    macro=Macro.MAP, iterable=Comprehension(macro=Macro.FILTER) as pods, where=None
                ) as made,
            ),
        ):
            pass
        case _:
            return None
    (variable,) = made.variables
    if at.rule.reads_node(at.rule.needs(made.body) - {variable.slot}):
        return None
    kept = _kept_pods(pods, at, made.body)
    if kept is None:
        return None
    slot, value, is_amount = variable.slot, at.rule.closure(made.body), expr.type == QUANTITY

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
    """Return a function to the pods that `count_of_pods` counts; None if there is none. It returns None if
    no asked node has pods. `used` is a further expression that is evaluated with the frame.
    """
    if not is_pods_of(expr.iterable, at.node) or len(expr.variables) != 1:
        return None
    (variable,) = expr.variables
    needs = at.rule.needs(expr.body) - {variable.slot}
    if at.rule.reads_node(needs):
        return None
    sought = expr.macro is not Macro.ALL
    selector = selector_of(expr.body, variable, at.rule.functions.fns, at.rule.closure) if sought else None
    candidates = (
        _equal_pods(expr.body, sought, variable.slot, at) if selector is None else _selected_pods(selector)
    )
    if candidates is None:
        if used is None:
            # Without a further expression the scalar back end is as fast.
            return None
        candidates = _all_pods
    more = frozenset() if used is None else at.rule.needs(used)
    captured = sorted((needs | more) & at.captured)
    return _keeping(variable.slot, captured, at.rule.closure(expr.body), sought, candidates)


def _keeping(
    slot: int, captured: Sequence[int], condition: Closure, sought: bool, candidates: Candidates
) -> Callable[[Batch], _Kept | None]:
    """Return a function to the pods of asked nodes for which a condition on the pod in `slot` is true, or
    false, as `sought`. `captured` are the slots of variables around it.
    """

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
        found, most = candidates(snapshot, frame, batch.rows)
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


def _some_pod(snapshot: LiveSnapshot) -> list[tuple[int, PodInfo]]:
    row = int(snapshot.pod_counts.argmax())
    return [(row, snapshot.info(row).pods[0])]


def filter_of_pods(functions: CompiledFunctions, expr: Comprehension, out: Compiler) -> AtOnce:
    """Lower `cluster.pods.filter(p, …)`. Its answer is None if any pod may be chosen."""
    (variable,) = expr.variables
    slot = variable.slot
    scope = BodyColumns(functions, slot, frozenset((slot,)), out.compile, out.needs)
    candidates = _equal_pods(expr.body, True, slot, Context(scope, frozenset(), frozenset()))
    condition = out.compile(expr.body)

    def at_once(frame: Frame, cluster: Value) -> Value:
        snapshot = cluster.snapshot
        if candidates is None or cluster.what_ifs is not None or not isinstance(snapshot, LiveSnapshot):
            return None
        # A variable that fails here must not stay failed.
        outer, own, chosen = frame[-1], frame.copy(), defaultdict[int, list[PodInfo]](list)
        own[-1] = Meter.of(outer.left)
        try:
            found, most = candidates(snapshot, own, snapshot.order)
            for row, pod in found:
                own[slot], own[-1] = pod, Meter.of(outer.left)
                if checked_truth(condition(own)):
                    chosen[row].append(pod)
                most = max(most, outer.left - own[-1].left)
        except (EvalError, NotColumnar):
            return None
        # All pods pay for the dearest.
        steps = int(snapshot.pod_counts.sum()) * (1 + most)
        if steps > outer.left:
            return None
        outer.left -= steps
        rows = snapshot.order[np.isin(snapshot.order, list(chosen))].tolist()
        return tuple(chain.from_iterable([_in_order(snapshot.info(row), chosen[row]) for row in rows]))

    return at_once


def _in_order(node: NodeInfo, chosen: Sequence[PodInfo]) -> Sequence[PodInfo]:
    """Return some pods of a node in the order in which it has them."""
    if len(chosen) == 1:
        return chosen
    wanted = set(map(id, chosen))
    return [pod for pod in node.pods if id(pod) in wanted]


# ---- the pods for which a condition may be true, or false --------------------------------------------------


def _all_pods(snapshot: LiveSnapshot, frame: Frame, rows: Rows) -> tuple[Sequence[tuple[int, PodInfo]], int]:
    """Return all pods of the asked nodes."""
    nodes = zip(rows.tolist(), snapshot.infos(rows), strict=True)
    return [(row, pod) for row, node in nodes for pod in node.pods], 0


def _selected_pods(selector: Closure) -> Candidates:
    """Return the pods of the term or constraint that decides first."""

    def selected(
        snapshot: LiveSnapshot, frame: Frame, rows: Rows
    ) -> tuple[Sequence[tuple[int, PodInfo]], int]:
        decider = selector(frame)
        if not isinstance(decider, (PodAffinityTerm, SpreadConstraint)) or decider.selector is None:
            raise NotColumnar
        found = TallyStore.of(snapshot).matching(decider.selector)
        if found is None:
            raise NotColumnar
        return found, 0

    return selected


@dataclass(frozen=True, slots=True)
class _Equality:
    """A comparison of a fact of pods with a value that all of them share. Pods without the key of the fact
    have the default.
    """

    fact: PodFact
    default: str | None
    value: TypedExpr


def _equal_pods(condition: TypedExpr, sought: bool, slot: int, at: Context) -> Candidates | None:
    """Return the pods that are equal to a value in one fact, if only they may give the sought answer: true of
    `fact == value && …`, false of `fact != value || …`.
    """
    equalities = [(each, at.rule.closure(each.value)) for each in _equalities(condition, sought, slot)]
    if not equalities:
        return None

    def equal(snapshot: LiveSnapshot, frame: Frame, rows: Rows) -> tuple[Sequence[tuple[int, PodInfo]], int]:
        store, before, steps = TallyStore.of(snapshot), frame[-1].left, 0
        rarest: Posting | None = None
        for each, closure in equalities:
            pods = store.pods_by(each.fact)
            try:
                value = closure(frame)
            except EvalError:
                continue  # the condition itself fails, or another part of it decides
            if isinstance(value, Optional):
                value = value.value
            steps += pods.longest + steps_of_value(value) + steps_of_value(each.default)
            # All pods without the key have the default.
            if value != each.default:
                posting = pods.get(value, {})
                rarest = posting if rarest is None or len(posting) < len(rarest) else rarest
        if rarest is None:
            raise NotColumnar
        # A value is read by at most four functions: the look-up, its default, and the comparison.
        return list(rarest.values()), before - frame[-1].left + 4 * steps

    return equal


def _equalities(condition: TypedExpr, sought: bool, slot: int) -> Iterator[_Equality]:
    """Yield the equalities of which each decides: a pod that is not equal has the other answer.

    They are preceded by other equalities and parts of constant cost only, so that the steps are known.
    """
    join, comparison = ("_&&_", "_==_") if sought else ("_||_", "_!=_")
    match condition:
        case CallOf(function=function) if function == join:
            parts = operands(condition)
        case _:
            parts = [condition]
    # A pod without the key of a fact must not fail the condition.
    tested = {fact for part in parts if (fact := _tested(part, sought, slot)) is not None}
    for part in parts:
        equality = _equality(part, comparison, tested, slot)
        if equality is not None:
            yield equality
        elif not _has_constant_cost(part):
            return


def _equality(part: TypedExpr, comparison: str, tested: Collection[PodFact], slot: int) -> _Equality | None:
    match part:
        case CallOf(function=function, args=(left, right)) if (
            function == comparison and left.type == right.type
        ):
            pass
        case _:
            return None
    for one, other in ((left, right), (right, left)):
        read, default = one, None
        match one:
            case CallOf(overload="optional_orValue_value", args=(optional, Const(value=str(value)))):
                read, default = optional, value
        fact = None if is_test(read) else _fact(read, slot)
        if fact is None or slot in free_slots(other):
            continue
        if fact.key is None or fact in tested or read.type.name == "optional":
            return _Equality(fact, default, other)
    return None


def _has_constant_cost(expr: TypedExpr) -> bool:
    """Return whether an expression takes the same steps for all pods."""
    match expr:
        case Const() | Var():
            return True
        case CallOf(overload="in_map", args=(Const(), table)):
            return _has_constant_cost(table)
        case CallOf(function=function, args=args) if has_weight(function, [arg.type for arg in args]):
            return False
        case CallOf() | FieldOf() | HasField() | KeyOf():
            return all(map(_has_constant_cost, children(expr)))
    return False


def _tested(expr: TypedExpr, sought: bool, slot: int) -> PodFact | None:
    """Return the fact of `key in pod.labels` and `has(pod.labels.key)`, or of `!(…)` if false is sought."""
    if not sought:
        match expr:
            case CallOf(function="!_", args=(inner,)):
                return _tested(inner, True, slot)
        return None
    return _fact(expr, slot) if is_test(expr) else None


def _fact(expr: TypedExpr, slot: int) -> PodFact | None:
    """Return the fact of the pod in `slot` that an expression reads or tests."""
    match expr:
        case FieldOf(operand=Var(slot=at)) if at == slot and expr.type in (STRING, _STRINGS):
            attribute = attribute_of(expr.field)
            return PodFact(attribute) if attribute in PodInfo.__struct_fields__ else None
    match looked_up(expr):
        case FieldOf(operand=Var(slot=at)) as table, Const(value=str(key)) if (
            at == slot and table.type == _MAP
        ):
            return PodFact(attribute_of(table.field), key)
    return None

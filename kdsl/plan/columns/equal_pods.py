"""The placed pods for which a condition may be true, or false: a selector or an equality leaves them. Filters
of all placed pods ask only those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np

from kdsl.check.model.traversal import children
from kdsl.check.model.typed import (
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    TypedExpr,
    Var,
)
from kdsl.check.model.types import STRING, Type
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
from kdsl.eval.values import EvalError, Optional, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.scope import BodyColumns, Context
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.counts.pod_index import Located, PodsByFact, Posting
from kdsl.plan.counts.store import TallyStore

Candidates: TypeAlias = Callable[[LiveSnapshot, Frame, Rows], tuple[Sequence[Located], int]]
"""Returns the placed pods for which a condition may have the sought answer on some rows at least, with their
rows, and a number of steps: another pod takes no more than that, or than one of these.
"""

_STRINGS: Final = Type("list", (STRING,))
_MAP: Final = Type("map", (STRING, STRING))


def selected_pods(selector: Closure) -> Candidates:
    """Return the pods of the term or constraint that decides first."""

    def selected(snapshot: LiveSnapshot, frame: Frame, rows: Rows) -> tuple[Sequence[Located], int]:
        decider = selector(frame)
        if not isinstance(decider, (PodAffinityTerm, SpreadConstraint)) or decider.selector is None:
            raise NotColumnar
        found = TallyStore.of(snapshot).matching(decider.selector)
        if found is None:
            raise NotColumnar
        return found, 0

    return selected


@dataclass(frozen=True, slots=True)
class Equality:
    """A comparison of a fact of pods with a value that all of them share. Pods without the key of the fact
    have the default. Comparing two texts takes no steps.
    """

    fact: PodFact
    default: str | None
    value: TypedExpr

    @property
    def is_of_texts(self) -> bool:
        return self.value.type == STRING


def equal_pods(condition: TypedExpr, sought: bool, slot: int, at: Context) -> Candidates | None:
    """Return the pods that are equal to a value in one fact, if only they may give the sought answer: true of
    `fact == value && …`, false of `fact != value || …`.
    """
    equalities = [(each, at.scope.closure(each.value)) for each in _equalities(condition, sought, slot)]
    if not equalities:
        return None

    def equal(snapshot: LiveSnapshot, frame: Frame, rows: Rows) -> tuple[Sequence[Located], int]:
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
            if not each.is_of_texts:
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


def _equalities(condition: TypedExpr, sought: bool, slot: int) -> Iterator[Equality]:
    """Yield the equalities of which each decides: a pod that is not equal has the other answer.

    They are preceded by other equalities and parts of constant cost only, so that the steps are known.
    """
    join, comparison = ("_&&_", "_==_") if sought else ("_||_", "_!=_")
    parts = _parts(condition, join)
    # A pod without the key of a fact must not fail the condition.
    tested = {fact for part in parts if (fact := _tested(part, sought, slot)) is not None}
    for part in parts:
        equality = _equality(part, comparison, tested, slot)
        if equality is not None:
            yield equality
        elif not _has_constant_cost(part):
            return


def first_equality(condition: TypedExpr, slot: int) -> Equality | None:
    """Return the equality with which a condition begins, if it does."""
    return _equality(_parts(condition, "_&&_")[0], "_==_", (), slot)


def _parts(condition: TypedExpr, join: str) -> Sequence[TypedExpr]:
    match condition:
        case CallOf(function=function) if function == join:
            return operands(condition)
    return [condition]


def _equality(part: TypedExpr, comparison: str, tested: Collection[PodFact], slot: int) -> Equality | None:
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
            return Equality(fact, default, other)
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


def filter_of_pods(functions: CompiledFunctions, expr: Comprehension, out: Compiler) -> AtOnce:
    """Lower `cluster.pods.filter(p, …)`. Its answer is None if any pod may be chosen, or if the steps of the
    others are not known: the filter takes exactly those of the scalar back end.
    """
    (variable,) = expr.variables
    slot = variable.slot
    scope = BodyColumns(functions, slot, frozenset((slot,)), out.compile, out.needs)
    at = Context(scope, frozenset(), frozenset())
    candidates, first = equal_pods(expr.body, True, slot, at), first_equality(expr.body, slot)
    compared = None if first is None else at.scope.closure(first.value)
    condition = out.compile(expr.body)

    def at_once(frame: Frame, cluster: Value) -> Value:
        snapshot = cluster.snapshot
        if candidates is None or cluster.what_ifs is not None or not isinstance(snapshot, LiveSnapshot):
            return None
        # A variable that fails here must not stay failed.
        outer, own, chosen = frame[-1], frame.copy(), defaultdict[int, list[PodInfo]](list)
        own[-1] = Meter.of(outer.left)
        count = steps = int(snapshot.pod_counts.sum())

        def ask(pod: PodInfo) -> tuple[bool, int]:
            """Return whether the condition holds for a pod, and the steps of asking."""
            own[slot], own[-1] = pod, Meter.of(outer.left)
            return checked_truth(condition(own)), outer.left - own[-1].left

        try:
            found, most = candidates(snapshot, own, snapshot.order)
            if most:
                # The others take steps, too: how many is known if the first part decides.
                value = None if compared is None else compared(own)
                value = value.value if isinstance(value, Optional) else value
                if first is None or value == first.default:
                    return None
                pods = TallyStore.of(snapshot).pods_by(first.fact)
                found = list(pods.get(value, {}).values())
                if 2 * len(found) > count:
                    return None  # the scalar back end asks them faster
                steps += _steps_of_others(pods, value, count, lambda pod: ask(pod)[1])
            for row, pod in found:
                holds, taken = ask(pod)
                steps += taken
                if holds:
                    chosen[row].append(pod)
        except (EvalError, NotColumnar):
            return None
        if steps > outer.left:
            return None
        outer.left -= steps
        rows = snapshot.order[np.isin(snapshot.order, list(chosen))].tolist()
        return tuple(chain.from_iterable([_in_order(snapshot.info(row), chosen[row]) for row in rows]))

    return at_once


def _steps_of_others(pods: PodsByFact, value: Value, count: int, steps_of: Callable[[PodInfo], int]) -> int:
    """Return the steps of those of `count` pods whose fact has another value than `value`, if the comparison
    with it decides: texts and lists of one length take the same steps.
    """
    known, steps = dict[int, int](), 0
    for each, posting in pods.items():
        count -= len(posting)
        if each != value:
            length = steps_of_value(each)
            if length not in known:
                known[length] = steps_of(next(iter(posting.values()))[1])
            steps += known[length] * len(posting)
    return steps + (count * steps_of(PodInfo("")) if count else 0)


def _in_order(node: NodeInfo, chosen: Sequence[PodInfo]) -> Sequence[PodInfo]:
    """Return some pods of a node in the order in which the node has them."""
    if len(chosen) == 1:
        return chosen
    wanted = set(map(id, chosen))
    return [pod for pod in node.pods if id(pod) in wanted]

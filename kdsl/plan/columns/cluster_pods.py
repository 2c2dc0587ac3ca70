"""Filters of all placed pods, which ask only those that an equality in the condition leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from kdsl.check.model.typed import Comprehension
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.scalar import Compiler, Frame
from kdsl.eval.scalar.logic import checked_truth
from kdsl.eval.scalar.meter import Meter, steps_of_value
from kdsl.eval.scalar.over_nodes import AtOnce
from kdsl.eval.values import EvalError, Optional, Value
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.equal_pods import equal_pods, first_equality
from kdsl.plan.columns.rule import BodyColumns, Context
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.counts.pod_index import PodsByFact
from kdsl.plan.counts.store import TallyStore


def filter_of_pods(functions: CompiledFunctions, expr: Comprehension, out: Compiler) -> AtOnce:
    """Lower `cluster.pods.filter(p, …)`. Its answer is None if any pod may be chosen, or if the steps of the
    others are not known: the filter takes exactly those of the scalar back end.
    """
    (variable,) = expr.variables
    slot = variable.slot
    scope = BodyColumns(functions, slot, frozenset((slot,)), out.compile, out.needs)
    at = Context(scope, frozenset(), frozenset())
    candidates, first = equal_pods(expr.body, True, slot, at), first_equality(expr.body, slot)
    compared = None if first is None else at.rule.closure(first.value)
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
                if first is None or compared is None:
                    return None
                pods = TallyStore.of(snapshot).pods_by(first.fact)
                value = compared(own)
                value = value.value if isinstance(value, Optional) else value
                if value == first.default:
                    return None
                found = list(pods.get(value, {}).values())
                if 2 * len(found) > count:
                    # The scalar back end asks them faster.
                    return None
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

"""Macros of views: their bodies are questions that counts can ask repeatedly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from kdsl.check.model.typed import Aggregate
from kdsl.check.model.types import Type
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.ir import free_variables, shape
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar.frame import UNSET, Closure, Frame, value_or_failure
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.over_nodes import AtOnce
from kdsl.eval.scalar.pod_keys import PodKey, captured_key_of, may_select, pod_key_of
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import Value

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

COUNTING_STEPS = 20_000
"""The steps for counting the pods of one node."""

_UNNAMED = frozenset(
    {
        *("Cluster", "Node", "AnyNode", "PlacedPod", "Topology", "TopologyCount", "PodTerms", "PodTermCount"),
        *("double", "dyn"),
    }
)
"""Types whose values are too large for the key of a question, or not suitable."""


class Question(Struct, frozen=True, eq=False):
    """The body of a macro on a frame of its own, with the values of all variables that it captures.

    `key` is equal for questions with equal answers, None if unknown. `on_facts` is true if the answer about
    a node does not depend on its pods. `pod_key` returns the key of a pod: pods with equal keys get equal
    answers for equal steps. It is None if there is no such key, or if no two pods share one.

    `selecting` is the term or constraint whose selector decides a question about pods, or the pod that
    decides one about terms; None if unknown. If the selector does not match, the answer is 0 or false, at the
    same steps everywhere.
    """

    key: Hashable | None
    on_facts: bool
    frame: Frame
    slot: int
    body: Closure
    at_once: AtOnce | None
    pod_key: PodKey | None
    selecting: Value
    limit: ClassVar[int] = COUNTING_STEPS
    """The steps for asking about one node."""

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterator[Value]:
        """Yield the answer for each value; EvalError. The steps are taken from `meter`."""
        frame, slot, body = self.frame, self.slot, self.body
        frame[-1] = meter
        for value in values:
            meter.left -= 1
            if meter.left < 0:
                raise meter.error
            frame[slot] = value
            yield body(frame)

    def answer(self, value: Value, meter: Meter) -> Value:
        """Return the answer for one value; EvalError. The steps are taken from `meter`."""
        frame = self.frame
        frame[-1], frame[self.slot] = meter, value
        meter.spend(1)
        return self.body(frame)

    def choose(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return the nodes of a live snapshot for which the answer is true, and the most steps that one node
        took; None if the nodes have to be asked one by one.
        """
        if self.at_once is None:
            return None
        meter = self.frame[-1] = Meter.of(self.limit * len(nodes))
        found = self.at_once(self.frame, NodeList(nodes))
        if found is None:
            return None
        chosen = found.nodes if isinstance(found, NodeList) else NodeSet(nodes.snapshot, nodes.rows[:0])
        return chosen, (meter.limit - meter.left) // len(nodes)

    def meter(self) -> Meter:
        """Return a full meter, for asking about one node."""
        return Meter.of(self.limit)


def compile_aggregate(expr: Aggregate, out: Compiler) -> Closure:
    """Compile a macro of a view, after `capture`. Macros with equal questions share the identity of one."""
    target, body = out.compile(expr.target), out.compile(expr.body)
    slot, macro, fns, lower = expr.variable.slot, expr.macro, out.fns, out.lower
    places = {slot: 0}
    question = out.questions.setdefault(shape(expr.body, places), object())
    # Captured values, and the pod.
    free = free_variables(expr.body)
    captured = sorted((free[each] for each in free if each != slot), key=lambda each: places[each.slot])
    # Each with its slot, and the key of its value if that is a pod; another value is its own key.
    captures = [
        (
            each.slot,
            out.compile(each),
            captured_key_of(expr.body, each.slot, fns) if each.type.name == "Pod" else None,
        )
        for each in captured
    ]
    on_facts = "cluster.pods" not in expr.body.reads
    has_key = all(_has_key(each.type) for each in captured)
    asks_nodes = lower is not None and expr.variable.type.name == "AnyNode"
    at_once: AtOnce | None = None
    pod_key = pod_key_of(expr.body, slot, fns) if expr.variable.type.name == "PlacedPod" else None
    selecting_slots = [variable.slot for variable in captured if may_select(variable.type)]
    selector = selector_of(expr.body, expr.variable, fns, out.compile)

    def ask(frame: Frame) -> Value:
        nonlocal at_once
        counted = target(frame)
        empty = counted.empty_count
        if empty is not None:
            return empty
        # Only what the body reads: a count must not keep the other values of an attempt alive.
        own: Frame = [UNSET] * len(frame)
        own[-1] = frame[-1]
        for at, read, _ in captures:
            own[at] = value_or_failure(read, frame)
        key: Hashable = None
        if has_key:
            keys = tuple([own[at] if key_of is None else key_of(own[at]) for at, _, key_of in captures])
            key = (question, keys) if _is_hashable(keys) else None
        if asks_nodes and at_once is None:
            assert lower is not None
            at_once = lower(expr, out, None)
        selecting = None if selector is None else selector(own)
        by_key = None if pod_key is None else pod_key([own[at] for at in selecting_slots])
        asking = Question(key, on_facts, own, slot, body, at_once, by_key, selecting)
        return getattr(counted, macro)(asking, frame[-1])

    return ask


def _has_key(type_: Type) -> bool:
    return type_.name not in _UNNAMED and all(map(_has_key, type_.args))


def _is_hashable(keys: Hashable) -> bool:
    try:
        hash(keys)
    except TypeError:  # a map that the rule made
        return False
    return True

"""Macros of views: their bodies as questions that what counts can ask again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, TypedExpr, Var
from kdsl.check.model.types import Type
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.ir import free_slots, shape
from kdsl.eval.nodelist import NodeList
from kdsl.eval.scalar.alike import Fns, fields_of, look_of
from kdsl.eval.scalar.frame import Closure, Compile, Frame, value_or_failure
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.over_nodes import AtOnce, Lower, Needs
from kdsl.eval.scalar.selecting import selector_of
from kdsl.eval.values import Value
from kdsl.eval.views import attribute_of

COUNTING_STEPS = 20_000
"""What counting the pods of one node may take."""

_POD = "pod."
_UNNAMED = frozenset(
    {
        *("Cluster", "Node", "AnyNode", "PlacedPod", "Topology", "TopologyCount", "PodTerms", "PodTermCount"),
        *("double", "dyn"),
    }
)
"""Types whose values are too large, or not fit, to tell questions apart by."""


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """The body of a macro on a frame of its own; see `kdsl.plan.counts.measures.Question`."""

    name: Hashable | None
    on_facts: bool
    frame: Frame
    slot: int
    body: Closure
    at_once: AtOnce | None
    look: Callable[[PodInfo], Hashable] | None
    selecting: Value

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterator[Value]:
        frame, slot, body = self.frame, self.slot, self.body
        frame[-1] = meter
        for value in values:
            meter.spend(1)
            frame[slot] = value
            yield body(frame)

    def choose(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        if self.at_once is None:
            return None
        meter = self.frame[-1] = Meter(COUNTING_STEPS * len(nodes))
        found = self.at_once(self.frame, NodeList(nodes))
        if found is None:
            return None
        chosen = found.nodes if isinstance(found, NodeList) else NodeSet(nodes.snapshot, nodes.rows[:0])
        return chosen, (meter.limit - meter.left) // len(nodes)

    def meter(self) -> Meter:
        return Meter(COUNTING_STEPS)


@dataclass(frozen=True, slots=True)
class _Capture:
    """A variable that a body reads and does not bind; of a pod only the `fields` that the body reads."""

    slot: int
    read: Closure
    fields: tuple[str, ...] | None
    has_name: bool

    def name(self, value: Value) -> Hashable:
        if self.fields is None:
            whole: Hashable = value
            return whole
        return tuple([getattr(value, field) for field in self.fields])


def compile_aggregate(
    expr: Aggregate,
    compile: Compile,
    fns: Fns,
    asked: dict[Hashable, object],
    needs: Needs,
    lower: Lower | None,
) -> Closure:
    """Compile a macro of a view, as `capture` left it. `asked` tells the questions of the macros of a rule
    from those of all others: macros that ask the same share an entry. `needs` and `lower` are for those that
    ask nodes.
    """
    target, body, slot, macro = compile(expr.target), compile(expr.body), expr.variable.slot, expr.macro
    places = {slot: 0}
    question = asked.setdefault(shape(expr.body, places), object())
    captured = sorted(_captured(expr), key=lambda variable: places[variable.slot])
    captures = [_capture(variable, expr.body, compile, fns) for variable in captured]
    on_facts = "cluster.pods" not in expr.body.reads
    has_name = all(each.has_name for each in captures)
    asks_nodes = lower is not None and expr.variable.type.name == "AnyNode"
    at_once: AtOnce | None = None
    look = look_of(expr.body, slot, fns) if expr.variable.type.name == "PlacedPod" else None
    selector = selector_of(expr.body, expr.variable, fns, compile)

    def ask(frame: Frame) -> Value:
        nonlocal at_once
        counted = target(frame)
        nothing = counted.nothing
        if nothing is not None:
            return nothing
        own = frame.copy()
        for each in captures:
            own[each.slot] = value_or_failure(each.read, frame)
        names = tuple([each.name(own[each.slot]) for each in captures]) if has_name else None
        name = None if names is None or not _is_hashable(names) else (question, names)
        if asks_nodes and at_once is None:
            assert lower is not None
            at_once = lower(expr, compile, needs)
        selecting = None if selector is None else selector(own)
        asking = _Question(name, on_facts, own, slot, body, at_once, look, selecting)
        return getattr(counted, macro)(asking, frame[-1])

    return ask


def _capture(variable: Var, body: TypedExpr, compile: Compile, fns: Fns) -> _Capture:
    fields = None
    if variable.type.name == "Pod":
        fields = fields_of(body, variable.slot, fns)
        if fields is None:
            # What variables stand for that the body reads is among these.
            words = sorted(word for word in body.reads if word.startswith(_POD))
            fields = tuple(attribute_of(word.removeprefix(_POD)) for word in words)
    return _Capture(variable.slot, compile(variable), fields, _has_name(variable.type))


def _captured(expr: Aggregate) -> list[Var]:
    """Return the variables that the body reads and does not bind: what was captured, and the pod."""
    free = free_slots(expr.body) - {expr.variable.slot}
    found = {part.slot: part for part in walk(expr.body) if isinstance(part, Var)}
    return [found[slot] for slot in free]


def _has_name(type_: Type) -> bool:
    return type_.name not in _UNNAMED and all(map(_has_name, type_.args))


def _is_hashable(names: Hashable) -> bool:
    try:
        hash(names)
    except TypeError:  # a map that the rule made
        return False
    return True

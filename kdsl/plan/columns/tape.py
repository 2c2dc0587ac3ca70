"""What evaluating a rule over columns comes to: noted once, and done again for other nodes and other pods.

Which operations on arrays a rule takes follows from the pod: from its labels, say, and from which resources
it asks for. How much of them it asks for makes no difference, as long as comparisons come out alike. So an
evaluation is watched, with the amounts of the pod as inputs, and from then on only its operations on arrays
are done, for whatever pod asks for the same resources, without those whose outcome the ranges of the columns
tell.

What the evaluation decided by looking at nodes is noted as a guard, what it decided by looking at amounts of
the pod as a condition: where one fails, the pod takes another course, which has a tape of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

from kdsl.base.resources import Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import LiveSnapshot
from kdsl.eval.scalar import Frame
from kdsl.eval.values import Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import AllBad, Array, Column, ColumnValue, NotColumnar, Same
from kdsl.plan.columns.given import Condition, watched_pod
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.traced import (
    UNSEEN,
    Applied,
    Input,
    Load,
    Place,
    Trace,
    Traced,
    Untraceable,
    amounts,
    bounds,
)

MAX_COURSES: Final = 128
"""So many signatures of pods are known to a part of a rule; beyond that it begins anew."""
MAX_TAPES: Final = 8
"""So many tapes are tried for one signature; where none will do, columns are evaluated."""

STEADY: Final = frozenset({"node.static", "node.usage"})
"""What a rule may read beside the pod for what it asks of nodes to follow from the pod."""

M = TypeVar("M")
Evaluate = Callable[[Batch], tuple[Sequence[Array], M]]
"""Evaluates a rule; returns arrays with one cell per row, and what they mean."""


class RuleTapes:
    """The tapes of the parts of a rule. `new_frame` makes a frame with nothing in it; `pod` and `cluster`
    are the slots of those two.
    """

    def __init__(self, new_frame: Callable[[], Frame], pod: int, cluster: int) -> None:
        self.new_frame = new_frame
        self.pod = pod
        self.cluster = cluster
        self._parts: list[Tapes[Any] | None] = []

    def add(self, reads: frozenset[str], evaluate: Evaluate[M]) -> Tapes[M] | None:
        """Return the tapes of a part that reads this, None where not all it asks of nodes follows from the
        pod.
        """
        is_steady = all(word in STEADY or word.startswith(_POD) for word in reads)
        tapes = Tapes(self, sorted(word for word in reads if word.startswith(_POD)), evaluate)
        self._parts.append(tapes if is_steady else None)
        return tapes if is_steady else None

    def are_known(self, frame: Frame) -> bool:
        """Tell whether all parts have tapes for the pod of a frame."""
        pod = frame[self.pod]
        return bool(self._parts) and all(each is not None and each.are_known(pod) for each in self._parts)


@dataclass(frozen=True, slots=True)
class Tape(Generic[M]):
    """An evaluation to be done again. Values are known by their numbers: first come the columns that are
    loaded, then constants, amounts of the pod and the results of steps. A step is a function and the numbers
    of up to three arguments, -1 for none.

    `known` are all columns whose ranges were looked at, also for what needs no step thanks to them.
    """

    known: tuple[Load, ...]
    loads: tuple[Place, ...]
    constants: tuple[Array, ...]
    inputs: tuple[tuple[Input, int], ...]
    conditions: tuple[Condition, ...]
    steps: tuple[tuple[Callable[..., Any], int, int, int], ...]
    guards: tuple[tuple[int, bool, bool], ...]
    outputs: tuple[int, ...]
    meaning: M
    cost: int

    @staticmethod
    def of(trace: Trace, outputs: Sequence[Traced], meaning: M, cost: int) -> Tape[M]:
        """Return a tape of what was noted, without what nobody needs."""
        needed = {id(each) for each in (*outputs, *(guard.mask for guard in trace.guards))}
        for each in reversed(trace.noted):
            if id(each) in needed and isinstance(each.origin, Applied):
                needed.update(map(id, each.origin.args))
        noted = [each for each in trace.noted if id(each) in needed]
        # Of equal rank they stay in the order in which they were noted.
        noted.sort(key=lambda each: _RANKS[each.origin.__class__])
        numbers = {id(each): number for number, each in enumerate(noted)}
        origins = [each.origin for each in noted]
        return Tape(
            tuple(each.origin for each in trace.noted if isinstance(each.origin, Load)),
            tuple(each.place for each in origins if isinstance(each, Load)),
            tuple(each for each in origins if isinstance(each, np.ndarray)),
            tuple(_input(each) for each in noted if isinstance(each.origin, Input)),
            tuple(dict.fromkeys(trace.conditions)),
            tuple(_step(each, numbers) for each in origins if isinstance(each, Applied)),
            tuple((numbers[id(each.mask)], each.of_all, each.outcome) for each in trace.guards),
            tuple(numbers[id(each)] for each in outputs),
            meaning,
            cost,
        )

    def holds(self, snapshot: LiveSnapshot) -> bool:
        """Tell whether the columns are still within the ranges that were taken for granted."""
        return all(bounds(snapshot, load.place) is load.range for load in self.known)

    def play(self, batch: Batch, pod: PodInfo) -> list[Array] | None:
        """Return the outputs for the rows of a batch; None where the evaluation would take another course."""
        for condition in self.conditions:
            if not condition.holds(pod):
                return None
        snapshot, rows = batch.snapshot, batch.rows
        cells: list[Any] = [amounts(snapshot, place).take(rows) for place in self.loads]
        cells += self.constants
        add = cells.append
        for source, largest in self.inputs:
            amount = source.amount(pod)
            if not 0 <= amount <= largest:
                return None
            add(amount)
        for function, one, two, three in self.steps:
            if three >= 0:
                add(function(cells[one], cells[two], cells[three]))
            elif two >= 0:
                add(function(cells[one], cells[two]))
            else:
                add(function(cells[one]))
        for mask, of_all, outcome in self.guards:
            found = cells[mask].all() if of_all else cells[mask].any()
            if found != outcome:
                return None
        batch.spend(self.cost)
        return [cells[output] for output in self.outputs]


_RANKS: Final = {Load: 0, np.ndarray: 1, Input: 2, Applied: 3}


def _step(applied: Applied, numbers: dict[int, int]) -> tuple[Callable[..., Any], int, int, int]:
    args = [numbers[id(arg)] for arg in applied.args]
    one, two, three = (*args, -1, -1)[:3]
    return applied.function, one, two, three


def _input(traced: Traced) -> tuple[Input, int]:
    assert isinstance(traced.origin, Input) and traced.range is not None
    return traced.origin, int(traced.range[1])


_POD: Final = "pod."


@dataclass(slots=True)
class _Course:
    """The tapes for pods of one signature. `is_closed` where the evaluation cannot be done again."""

    tapes: list[Tape[Any]] = field(default_factory=list)
    is_closed: bool = False


class Tapes(Generic[M]):
    """The tapes of one part of a rule, which reads these words of the pod."""

    def __init__(self, rule: RuleTapes, words: Sequence[str], evaluate: Evaluate[M]) -> None:
        self._rule = rule
        self._evaluate = evaluate
        self._fields = tuple(attribute_of(word.removeprefix(_POD)) for word in words)
        self._read: Callable[[PodInfo], Any] = attrgetter(*self._fields) if words else lambda pod: None
        self._courses: dict[Hashable, _Course] = {}

    def are_known(self, pod: PodInfo) -> bool:
        """Tell whether there is a tape for the signature of a pod."""
        course = self._courses.get(self._signature(pod))
        return course is not None and bool(course.tapes)

    def play(self, batch: Batch) -> tuple[list[Array], M] | None:
        """Return what the evaluation of a batch comes to; None where there is no tape of it."""
        snapshot = batch.snapshot
        if not isinstance(snapshot, LiveSnapshot):
            return None
        pod = batch.frame[self._rule.pod]
        signature = self._signature(pod)
        course = self._courses.get(signature)
        if course is None:
            if len(self._courses) >= MAX_COURSES:
                self._courses.clear()
            # The first evaluation is not watched: no pod like it may come again.
            self._courses[signature] = _Course()
            return None
        if course.is_closed:
            return None
        for tape in course.tapes:
            if tape.holds(snapshot):
                found = tape.play(batch, pod)
                if found is not None:
                    return found, tape.meaning
        return self._play_new(course, batch, snapshot, pod)

    def _play_new(
        self, course: _Course, batch: Batch, snapshot: LiveSnapshot, pod: PodInfo
    ) -> tuple[list[Array], M] | None:
        """Watch an evaluation, and play its tape."""
        course.tapes = [each for each in course.tapes if each.holds(snapshot)]
        if len(course.tapes) >= MAX_TAPES:
            return None
        tape = self._record(batch, snapshot, pod)
        found = None if tape is None else tape.play(batch, pod)
        if tape is None or found is None:
            course.is_closed = True
            return None
        course.tapes.insert(0, tape)
        return found, tape.meaning

    def _signature(self, pod: PodInfo) -> Hashable:
        """Return what decides, beside amounts, which operations the evaluation takes."""
        values = self._read(pod)
        if values.__class__ is not tuple or len(self._fields) == 1:
            return _shape(values)
        return tuple([_shape(each) for each in values])

    def _record(self, batch: Batch, snapshot: LiveSnapshot, pod: PodInfo) -> Tape[M] | None:
        """Watch an evaluation for a pod with inputs; None where it cannot be done again for other rows."""
        trace, rule = Trace(snapshot, batch.rows), self._rule
        amounts_of = tuple(each for each in self._fields if isinstance(getattr(pod, each), Resources))
        frame = rule.new_frame()
        meter = frame[-1] = batch.frame[-1].full()
        try:
            frame[rule.pod] = watched_pod(pod, trace, amounts_of)
            frame[rule.cluster] = batch.frame[rule.cluster]
            outputs, meaning = self._evaluate(Batch(UNSEEN, cast(Any, trace.rows), frame, UNSEEN))
            cost = meter.limit - meter.left
            return Tape.of(trace, [_traced(each) for each in outputs], meaning, cost)
        except (Untraceable, NotColumnar, AllBad):
            return None


def _shape(value: Value) -> Hashable:
    """Return what a value of the pod is apart from amounts: of resources, which they are."""
    shape: Hashable = tuple(value) if isinstance(value, Resources) else value
    return shape


def _traced(values: object) -> Traced:
    if not isinstance(values, Traced):
        raise Untraceable
    return values


def recorded(closure: Operand, rule: RuleTapes, reads: frozenset[str]) -> Operand:
    """Return an expression that reads this, with tapes where what it asks of nodes follows from the pod."""

    def evaluate(batch: Batch) -> tuple[list[Array], Same | None]:
        value = closure(batch)
        if isinstance(value, Same):
            return [], value
        if not isinstance(value, Column) or (value.bad is not None and value.bad.any()):
            raise Untraceable
        return [value.values], None

    tapes = rule.add(reads, evaluate)
    if tapes is None:
        return closure
    known = tapes

    def play(batch: Batch) -> ColumnValue:
        played = known.play(batch)
        if played is None:
            return closure(batch)
        arrays, same = played
        return Column(arrays[0]) if same is None else same

    return play

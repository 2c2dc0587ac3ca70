"""Recorded evaluations of a rule over columns, replayed for other nodes and other pods.

The operations on arrays depend on the pod: on its labels, say, and on the resources it requests. The
requested amounts do not change them. So an evaluation is recorded with the amounts of the pod as inputs.
Afterwards only its operations on arrays are replayed for pods with the same resources, without
operations whose result follows from the ranges of the columns.

Decisions about nodes are recorded as guards. If one fails, another tape is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

from kdsl.base.bounded_dict import BoundedDict
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Frame
from kdsl.eval.scalar.pod_keys import reader_of
from kdsl.eval.values import Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import MIN_ROWS, MIN_TAPED_ROWS, Batch, is_worth_columns
from kdsl.plan.columns.column import AllBad, Array, Column, ColumnValue, Mask, NotColumnar, Same
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.pod_inputs import PodRows, pod_with_inputs
from kdsl.plan.columns.traced import (
    UNREADABLE,
    Applied,
    ColumnKey,
    Input,
    Load,
    OperationTrace,
    Traced,
    Untraceable,
    amount_at,
    amounts,
    bounds,
)

MAX_SIGNATURES: Final = 128
"""The most signatures of pods per part of a rule; beyond that it starts over."""
MAX_TAPES: Final = 8
"""The most tapes per signature; if none fits, columns are evaluated."""

STABLE: Final = frozenset({"node.static", "node.usage"})
"""The reads besides the pod with which the operations on nodes still depend on the pod only."""

M = TypeVar("M")
Evaluate = Callable[[Batch], tuple[Sequence[Array], M]]
"""Evaluates a rule; returns arrays with one cell per row, and their meaning."""


class RuleTapes:
    """The tapes of the parts of a rule. `new_frame` makes an empty frame; `pod` and `cluster` are slots."""

    def __init__(self, new_frame: Callable[[], Frame], pod: int, cluster: int) -> None:
        self.new_frame = new_frame
        self.pod = pod
        self.cluster = cluster
        self._parts: list[Tapes[Any] | None] = []

    def add(self, reads: frozenset[str], evaluate: Evaluate[M]) -> Tapes[M] | None:
        """Return the tapes of a part with these reads, None if its operations depend on more than the pod."""
        is_stable = all(word in STABLE or word.startswith(_POD) for word in reads)
        tapes = Tapes(self, sorted(word for word in reads if word.startswith(_POD)), evaluate)
        self._parts.append(tapes if is_stable else None)
        return tapes if is_stable else None

    @property
    def whole(self) -> Tapes[Any] | None:
        """The tapes of a rule with one part, None if that has none."""
        return self._parts[0] if len(self._parts) == 1 else None

    def are_known(self, frame: Frame) -> bool:
        """Return whether all parts have tapes for the pod of a frame."""
        pod = frame[self.pod]
        return bool(self._parts) and all(each is not None and each.are_known(pod) for each in self._parts)


def is_faster_over_columns(nodes: NodeSet, tapes: RuleTapes | None, frame: Frame) -> bool:
    """Return whether columns, or for few nodes the tapes of a rule, are faster than the scalar back end."""
    if not is_worth_columns(nodes, MIN_TAPED_ROWS):
        return False
    # A pod that shares cards is scored on few nodes: without tapes most such pods take a third more calls.
    return len(nodes.rows) >= MIN_ROWS or (tapes is not None and tapes.are_known(frame))


@dataclass(slots=True, eq=False)
class Tape(Generic[M]):
    """A recorded evaluation. Values are numbered: first the loaded columns, then constants, amounts of the
    pod, and the results of steps. A step is a function and the numbers of up to three arguments, -1 for none.

    `known` are all columns whose ranges were used, also to leave out steps.
    """

    known: tuple[Load, ...]
    loads: tuple[ColumnKey, ...]
    constants: tuple[Array, ...]
    inputs: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    steps: tuple[tuple[Callable[..., Any], int, int, int], ...]
    guards: tuple[tuple[int, bool, bool], ...]
    outputs: tuple[int, ...]
    meaning: M
    cost: int
    # The loaded columns, with the mark of the snapshot's columns from which they are.
    _loaded: tuple[object, list[Array] | None] = (None, None)

    @staticmethod
    def of(trace: OperationTrace, outputs: Sequence[Traced], meaning: M, cost: int) -> Tape[M]:
        """Return a tape of the recorded values, without unused ones."""
        needed = {id(each) for each in (*outputs, *(guard.mask for guard in trace.guards))}
        for each in reversed(trace.values):
            if id(each) in needed and isinstance(each.origin, Applied):
                needed.update(map(id, each.origin.args))
        # The assumed range of an amount may have decided something even if the amount itself is not needed.
        values = [each for each in trace.values if id(each) in needed or isinstance(each.origin, Input)]
        # The sort is stable: values of one rank stay in the recorded order.
        values.sort(key=_rank)
        numbers = {id(each): number for number, each in enumerate(values)}
        origins = [each.origin for each in values]
        return Tape(
            tuple(each.origin for each in trace.values if isinstance(each.origin, Load)),
            tuple(each.place for each in origins if isinstance(each, Load)),
            tuple(each for each in origins if isinstance(each, np.ndarray)),
            _inputs(values),
            tuple(_step(each, numbers) for each in origins if isinstance(each, Applied)),
            tuple((numbers[id(each.mask)], each.of_all, each.outcome) for each in trace.guards),
            tuple(numbers[id(each)] for each in outputs),
            meaning,
            cost,
        )

    def columns(self, snapshot: LiveSnapshot) -> list[Array] | None:
        """Return the columns to load; None if the amounts are no longer within the assumed ranges."""
        mark, columns = self._loaded
        if mark is not snapshot.column_layout.mark:
            mark = snapshot.column_layout.mark
            holds = all(bounds(snapshot, load.place) is load.range for load in self.known)
            columns = [amounts(snapshot, place) for place in self.loads] if holds else None
            self._loaded = mark, columns
        return columns

    def play(self, batch: Batch, snapshot: LiveSnapshot, pod: PodInfo) -> list[Array] | None:
        """Return the outputs for the rows of a batch; None if the evaluation would go differently."""
        columns = self.columns(snapshot)
        if columns is None:
            return None
        rows = batch.rows
        cells: list[Any] = [column.take(rows) for column in columns]
        cells += self.constants
        add = cells.append
        for attribute, parts in self.inputs:
            amount_of = getattr(pod, attribute).amounts().get
            for resource, largest in parts:
                amount = amount_of(resource, 0)
                if not 0 <= amount <= largest:
                    return None
                add(amount)
        self._run(cells)
        for mask, of_all, outcome in self.guards:
            found = cells[mask].all() if of_all else cells[mask].any()
            if found != outcome:
                return None
        batch.spend(self.cost)
        return [cells[output] for output in self.outputs]

    def play_for_pods(self, pods: PodRows, node: NodeInfo) -> tuple[list[Any], Mask] | None:
        """Return the outputs for pods at one node, whose amounts take the place of the columns, and for which
        pods they hold; None for no pod.
        """
        loaded: dict[ColumnKey, int] = {}
        for load in self.known:
            least, largest = load.range
            loaded[load.place] = cell = amount_at(node, load.place)
            if not least <= cell <= largest:
                return None
        holds = np.ones(len(pods), np.bool_)
        cells: list[Any] = [np.int64(loaded[place]) for place in self.loads]
        cells += self.constants
        for attribute, parts in self.inputs:
            for resource, most in parts:
                amounts_of = pods.amounts(attribute, resource)
                holds &= (amounts_of >= 0) & (amounts_of <= most)
                cells.append(amounts_of)
        with np.errstate(all="ignore"):
            self._run(cells)
        # The recorded rows are an example for a guard about some row. One about all rows must hold for each.
        for mask, of_all, outcome in self.guards:
            if of_all is outcome:
                holds &= cells[mask] if of_all else ~cells[mask]
        return [cells[output] for output in self.outputs], holds

    def _run(self, cells: list[Any]) -> None:
        """Append the results of the steps."""
        add = cells.append
        for function, one, two, three in self.steps:
            if three >= 0:
                add(function(cells[one], cells[two], cells[three]))
            elif two >= 0:
                add(function(cells[one], cells[two]))
            else:
                add(function(cells[one]))


_RANKS: Final = {Load: 0, np.ndarray: 1, Input: 2, Applied: 3}


def _rank(value: Traced) -> tuple[int, str]:
    origin = value.origin
    return _RANKS[origin.__class__], origin.attribute if isinstance(origin, Input) else ""


def _inputs(values: Sequence[Traced]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Return the resources with their assumed largest amounts, by attribute of the pod."""
    found: dict[str, list[tuple[str, int]]] = {}
    for each in values:
        if isinstance(each.origin, Input):
            assert each.range is not None
            found.setdefault(each.origin.attribute, []).append((each.origin.resource, int(each.range[1])))
    return tuple([(attribute, tuple(parts)) for attribute, parts in found.items()])


def _step(applied: Applied, numbers: dict[int, int]) -> tuple[Callable[..., Any], int, int, int]:
    args = [numbers[id(arg)] for arg in applied.args]
    one, two, three = (*args, -1, -1)[:3]
    return applied.function, one, two, three


_POD: Final = "pod."
_CLOSED: Final[list[Tape[Any]]] = []
"""The tapes of a signature whose evaluation cannot be replayed."""


class Tapes(Generic[M]):
    """The tapes of one part of a rule, which reads these words of the pod."""

    def __init__(self, rule: RuleTapes, words: Sequence[str], evaluate: Evaluate[M]) -> None:
        self._rule = rule
        self._evaluate = evaluate
        self._fields = tuple(attribute_of(word.removeprefix(_POD)) for word in words)
        self._read: Callable[[PodInfo], Any] = reader_of(self._fields, ()) if words else lambda pod: None
        self._tapes = BoundedDict[Hashable, list[Tape[Any]]](MAX_SIGNATURES)
        # Signatures without a recording for `masks_for_pods`. Attempts may still record other nodes.
        self._failed = BoundedDict[Hashable, None](MAX_SIGNATURES)

    def are_known(self, pod: PodInfo) -> bool:
        """Return whether there is a tape for the signature of a pod."""
        return bool(self._tapes.get(self.signature(pod)))

    def play(self, batch: Batch) -> tuple[list[Array], M] | None:
        """Return the result for a batch; None if there is no tape."""
        snapshot = batch.snapshot
        if not isinstance(snapshot, LiveSnapshot):
            return None
        pod = batch.frame[self._rule.pod]
        signature = self.signature(pod)
        known = self._tapes.get(signature)
        if known is None:
            # The first evaluation is not recorded, as its signature may never come again.
            self._tapes.keep(signature, [])
            return None
        if known is _CLOSED:
            return None
        for tape in known:
            found = tape.play(batch, snapshot, pod)
            if found is not None:
                return found, tape.meaning
        current = [each for each in known if each.columns(snapshot) is not None]
        if len(current) >= MAX_TAPES:
            return None
        new = self._record(batch, snapshot, pod)
        found = None if new is None else new.play(batch, snapshot, pod)
        if new is None or found is None:
            self._tapes[signature] = _CLOSED
            return None
        self._tapes[signature] = [new, *current]
        return found, new.meaning

    def masks_for_pods(
        self, pods: PodRows, node: NodeInfo, most: int, batch: Callable[[], Batch]
    ) -> tuple[Mask, Mask]:
        """Return whether any recorded mask is true for pods of one signature at one node, and for which pods
        that is known within `most` steps. `batch` returns a batch of one of the pods, to record one.
        """
        known = self._tapes.get(pods.signature)
        if not known and known is not _CLOSED and pods.signature not in self._failed:
            asked = batch()
            assert isinstance(asked.snapshot, LiveSnapshot)
            with np.errstate(all="ignore"):
                new = self._record(asked, asked.snapshot, asked.frame[self._rule.pod])
            if new is None:
                self._failed.keep(pods.signature, None)
            else:
                known = self._tapes.keep(pods.signature, [new])
        found, is_known = np.zeros((2, len(pods)), np.bool_)
        for tape in known or ():
            played = tape.play_for_pods(pods, node) if tape.cost <= most else None
            if played is not None:
                masks, holds = played
                for mask in masks:
                    found |= mask & holds & ~is_known
                is_known |= holds
        return found, is_known

    def signature(self, pod: PodInfo) -> Hashable:
        """Return the parts of the pod, apart from amounts, that determine the operations."""
        values = self._read(pod)
        if values.__class__ is not tuple or len(self._fields) == 1:
            return _shape(values)
        return tuple([_shape(each) for each in values])

    def _record(self, batch: Batch, snapshot: LiveSnapshot, pod: PodInfo) -> Tape[M] | None:
        """Record an evaluation for a pod with inputs; None if it cannot be replayed for other rows."""
        trace, rule = OperationTrace(snapshot, batch.rows), self._rule
        amounts_of = tuple(each for each in self._fields if isinstance(getattr(pod, each), Resources))
        frame = rule.new_frame()
        meter = frame[-1] = batch.frame[-1].full()
        try:
            frame[rule.pod] = pod_with_inputs(pod, trace, amounts_of)
            frame[rule.cluster] = batch.frame[rule.cluster]
            outputs, meaning = self._evaluate(Batch(UNREADABLE, cast(Any, trace), frame, UNREADABLE))
            cost = meter.limit - meter.left
            return Tape.of(trace, [_traced(each) for each in outputs], meaning, cost)
        except (Untraceable, NotColumnar, AllBad):
            return None


def _shape(value: Value) -> Hashable:
    """Return a value of the pod without amounts: of resources, only their names."""
    shape: Hashable = tuple(value) if isinstance(value, Resources) else value
    return shape


def _traced(values: object) -> Traced:
    if not isinstance(values, Traced):
        raise Untraceable
    return values


def recorded(closure: ColumnClosure, rule: RuleTapes, reads: frozenset[str]) -> ColumnClosure:
    """Return an expression with these reads, with tapes if its operations on nodes depend on the pod only."""

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

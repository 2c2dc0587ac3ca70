"""What evaluating a rule over columns comes to for one kind of pod: noted once, and done again for other
nodes.

For one kind of pod a rule asks the same of every batch of nodes: its constants, the items of its loops, and
so which operations on arrays it takes, follow from the pod. So for a kind that comes again an evaluation is
watched, and from then on only its operations on arrays are done, without those whose outcome the ranges of
the columns tell. That takes a few microseconds per operation less, which is what small batches cost.

What the evaluation decided by looking at nodes is noted as a guard: where it fails, the tape is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np

from kdsl.cluster.snapshot import LiveSnapshot
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import AllBad, Array, Column, ColumnValue, NotColumnar, Same
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.traced import (
    UNSEEN,
    Applied,
    Load,
    Place,
    Trace,
    Traced,
    Untraceable,
    amounts,
    bounds,
)
from kdsl.plan.scalar import UNSET, Frame

AFTER: Final = 1
"""So many evaluations of a kind of pod are not watched: it may not come again."""

STEADY: Final = frozenset({"node.static", "node.usage"})
"""What a rule may read beside the pod for what it asks of nodes to follow from the pod."""

M = TypeVar("M")
Evaluate = Callable[[Batch], tuple[Sequence[Array], M]]
"""Evaluates a rule; returns arrays with one cell per row, and what they mean."""


class TapeSlots:
    """The slots of the frame in which a rule keeps the tapes of its parts, None for parts that have none.
    `slot_of` gives a slot by name.
    """

    def __init__(self, slot_of: Callable[[str], int]) -> None:
        self._slot_of = slot_of
        self._slots: list[int | None] = []

    def add(self, reads: frozenset[str]) -> int | None:
        """Return the slot of a part that reads this, None where pods of a kind do not ask nodes the same."""
        is_steady = all(word in STEADY or word.startswith("pod.") for word in reads)
        self._slots.append(self._slot_of(f"tape {len(self._slots)}") if is_steady else None)
        return self._slots[-1]

    def are_known(self, frame: Frame) -> bool:
        """Tell whether all parts have their tapes for the kind of pod of a frame."""
        return bool(self._slots) and all(
            slot is not None and frame[slot].__class__ is Tape for slot in self._slots
        )


@dataclass(frozen=True, slots=True)
class Tape(Generic[M]):
    """An evaluation to be done again. Values are known by their numbers: first come the columns that are
    loaded, then constants, then the results of steps. A step is a function and the numbers of up to three
    arguments, -1 for none.

    `known` are all columns whose ranges were looked at, also for what needs no step thanks to them.
    """

    known: tuple[Load, ...]
    loads: tuple[Place, ...]
    constants: tuple[Array, ...]
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
            tuple(_step(each, numbers) for each in origins if isinstance(each, Applied)),
            tuple((numbers[id(each.mask)], each.of_all, each.outcome) for each in trace.guards),
            tuple(numbers[id(each)] for each in outputs),
            meaning,
            cost,
        )

    def holds(self, snapshot: LiveSnapshot) -> bool:
        """Tell whether the columns are still within the ranges that were taken for granted."""
        return all(bounds(snapshot, load.place) is load.range for load in self.known)

    def play(self, batch: Batch) -> list[Array] | None:
        """Return the outputs for the rows of a batch; None where the evaluation would take another course."""
        snapshot, rows = batch.snapshot, batch.rows
        cells = [amounts(snapshot, place).take(rows) for place in self.loads]
        cells += self.constants
        add = cells.append
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


_RANKS: Final = {Load: 0, np.ndarray: 1, Applied: 2}


def _step(applied: Applied, numbers: dict[int, int]) -> tuple[Callable[..., Any], int, int, int]:
    args = [numbers[id(arg)] for arg in applied.args]
    one, two, three = (*args, -1, -1)[:3]
    return applied.function, one, two, three


class Tapes(Generic[M]):
    """The tapes of one rule, by kind of pod: each stands in a slot of the frame, as whatever is computed once
    for a kind.
    """

    def __init__(self, slot: int, evaluate: Evaluate[M]) -> None:
        self._slot = slot
        self._evaluate = evaluate

    def play(self, batch: Batch) -> tuple[list[Array], M] | None:
        """Return what the evaluation of a batch comes to; None where there is no tape of it."""
        frame, snapshot, slot = batch.frame, batch.snapshot, self._slot
        known = frame[slot]
        if known is None or not isinstance(snapshot, LiveSnapshot):
            return None
        if known.__class__ is not Tape:
            seen = 0 if known is UNSET else known
            if seen < AFTER:
                frame[slot] = seen + 1
                return None
            known = frame[slot] = self._record(batch, snapshot)
        elif not known.holds(snapshot):
            known = frame[slot] = self._record(batch, snapshot)
        found = None if known is None else known.play(batch)
        if found is None:
            frame[slot] = None
            return None
        return found, known.meaning

    def _record(self, batch: Batch, snapshot: LiveSnapshot) -> Tape[M] | None:
        """Watch an evaluation; None where it cannot be done again for other rows."""
        trace, meter = Trace(snapshot, batch.rows), batch.frame[-1]
        before = meter.left
        try:
            outputs, meaning = self._evaluate(Batch(UNSEEN, cast(Any, trace.rows), batch.frame, UNSEEN))
            cost = before - meter.left
            return Tape.of(trace, [_traced(each) for each in outputs], meaning, cost)
        except (Untraceable, NotColumnar, AllBad):
            return None
        finally:
            meter.left = before


def _traced(values: object) -> Traced:
    if not isinstance(values, Traced):
        raise Untraceable
    return values


def recorded(closure: Operand, slot: int) -> Operand:
    """Return an expression with its tapes in a slot of the frame."""

    def evaluate(batch: Batch) -> tuple[list[Array], Same | None]:
        value = closure(batch)
        if isinstance(value, Same):
            return [], value
        if not isinstance(value, Column) or (value.bad is not None and value.bad.any()):
            raise Untraceable
        return [value.values], None

    tapes = Tapes(slot, evaluate)

    def play(batch: Batch) -> ColumnValue:
        played = tapes.play(batch)
        if played is None:
            return closure(batch)
        arrays, same = played
        return Column(arrays[0]) if same is None else same

    return play

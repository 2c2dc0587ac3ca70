"""Expressions without a column form: evaluated by the scalar back end, if possible once per distinct node.

Clusters have tens of distinct taints and zones, not thousands. An expression that reads only such facts is
evaluated once per combination of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kdsl.check.model.types import Type
from kdsl.eval.scalar import UNSET, Closure
from kdsl.eval.scalar.meter import Meter, steps_of_value
from kdsl.eval.values import EvalError, Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.batch_columns import BatchColumns
from kdsl.plan.columns.column import (
    AllBad,
    Coded,
    Column,
    ColumnValue,
    NotColumnar,
    OutOfSteps,
    Same,
    either,
    encoded,
    of_results,
)
from kdsl.plan.columns.groups import Digit, grouped
from kdsl.plan.columns.node_groups import Collect, distinct_digits

_BAD = EvalError("bad in another column")


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """The slots of the node, and of the lazy variables that belong to it."""

    node: int
    resets: tuple[int, ...]


class Fallback:
    """Evaluates an expression by the scalar back end, once per distinct combination of its inputs.

    The inputs are the variables of the macros and functions around it (`captured`), and what it reads of the
    node: `collectors` add these reads if the variables have one value for all rows, and in any case. `slots`
    is None if it does not read the node.
    """

    def __init__(
        self,
        closure: Closure,
        type_: Type,
        captured: Sequence[int],
        slots: NodeSlots | None = None,
        collectors: tuple[Collect | None, Collect | None] = (None, None),
    ) -> None:
        self._closure = closure
        self._type = type_
        self._captured = tuple(captured)
        self._slots = slots
        self._collectors = collectors

    def __call__(self, batch: Batch) -> ColumnValue:
        coded: dict[int, Coded] = {}
        for slot in self._captured:
            value = batch.columns[slot]
            if isinstance(value, Same):
                batch.frame[slot] = value.value
            else:
                coded[slot] = encoded(value)
        frame, closure, slots = batch.frame, self._closure, self._slots
        if not coded and slots is None:
            try:
                return Same(closure(frame))
            except EvalError:
                raise AllBad from None
        own = [] if slots is None else distinct_digits(self._collectors[bool(coded)], batch)

        def answer(row: int) -> Value:
            for slot, column in coded.items():
                frame[slot] = column.values[column.codes[row]]
            if slots is not None:
                set_node(batch, row, slots)
            meter.next()
            return closure(frame)

        with Spending(batch) as meter:
            return once_per_group(batch, coded.values(), own, answer, self._type)


def once_per_group(
    batch: Batch,
    coded: Collection[Coded],
    others: Sequence[Digit] | None,
    answer: Callable[[int], Value],
    type_: Type,
) -> ColumnValue:
    """Return the answer for each row, asked once per distinct combination of values and of `others`, on which
    it depends, too; for each row if `others` is None.
    """
    bad = either(*(one.bad for one in coded))
    digits = None
    if others is not None:
        digits = [(one.codes, len(one.values)) for one in coded]
        if bad is not None:
            # The value in a bad row is arbitrary, so it must not represent good rows.
            digits.append((bad.astype(np.int64), 2))
        digits += others
    representatives, codes = grouped(digits, len(batch))
    results: list[Value] = []
    for row in representatives.tolist():
        try:
            results.append(_BAD if bad is not None and bad[row] else answer(row))
        except EvalError as error:
            results.append(error)
    return of_results(results, type_, codes)


class Spending:
    """The meter of a batch while rows are evaluated one by one: each row begins with the rest of the batch,
    and finally the batch pays for the most expensive row.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._outer: Meter = batch.frame[-1]
        self._meter = Meter.of(max(self._outer.left, 0))
        self._least = self._meter.limit

    def __enter__(self) -> Spending:
        self._batch.frame[-1] = self._meter
        return self

    def next(self) -> None:
        """Begin with another row; OutOfSteps if the last one ran out, and that makes all others useless."""
        if self._meter.left < 0 and self._outer.is_of_each:
            raise OutOfSteps
        self._least = min(self._least, self._meter.left)
        self._meter.left = self._meter.limit

    def __exit__(self, *_: object) -> None:
        self._batch.frame[-1] = self._outer
        # A row that ran out is bad and goes to the scalar back end; the other rows go on.
        least = max(min(self._least, self._meter.left), 0)
        self._batch.spend(self._meter.limit - least)


def set_node(batch: Batch, row: int, slots: NodeSlots) -> None:
    """Put the node of a row in the frame."""
    frame = batch.frame
    frame[slots.node] = batch.snapshot.info(int(batch.rows[row]))
    for slot in slots.resets:
        frame[slot] = UNSET


class NodeMethod:
    """Calls a method of a value that all rows share with each node, after `others`, which they share too.

    If the value has a method for many nodes at once, that is called instead: by columns of facts (`_over`
    appended to the name), or by rows (`_column` appended; it returns an int if all rows share it).
    """

    def __init__(
        self,
        receiver: Callable[[Batch], ColumnValue],
        name: str,
        others: Sequence[Callable[[Batch], ColumnValue]],
        type_: Type,
    ) -> None:
        self._receiver = receiver
        self._name, self._over, self._column = name, f"{name}_over", f"{name}_column"
        self._others = tuple(others)
        self._type = type_

    def __call__(self, batch: Batch) -> ColumnValue:
        receiver = self._receiver(batch)
        if not isinstance(receiver, Same):
            raise NotColumnar
        others = [other.value for each in self._others if isinstance(other := each(batch), Same)]
        if len(others) < len(self._others):
            raise NotColumnar
        over = getattr(receiver.value, self._over, None)
        if over is not None:
            return Column(over(*others, BatchColumns(batch)))
        column = None if others else getattr(receiver.value, self._column, None)
        if column is not None:
            found = column(batch.rows)
            return Same(found) if found.__class__ is int else Column(found)
        method, nodes = getattr(receiver.value, self._name), batch.nodes_at(range(len(batch)))
        return once_per_group(batch, (), None, lambda row: method(*others, nodes[row]), self._type)


def apply_distinct(
    implementation: Callable[..., Value],
    args: Sequence[ColumnValue],
    type_: Type,
    batch: Batch,
    has_weight: bool,
) -> ColumnValue:
    """Call a function once per distinct combination of its arguments. With `has_weight`, the batch pays for
    the largest arguments and result.
    """
    columns = [arg if isinstance(arg, Same) else encoded(arg) for arg in args]
    highest = 0

    def answer(row: int) -> Value:
        nonlocal highest
        values = [arg.value if isinstance(arg, Same) else arg.values[arg.codes[row]] for arg in columns]
        result: Value = None
        try:
            result = implementation(*values)
            return result
        finally:
            if has_weight:
                highest = max(highest, steps_of([*values, result]))

    try:
        return once_per_group(batch, [arg for arg in columns if isinstance(arg, Coded)], (), answer, type_)
    finally:
        batch.spend(highest)


def steps_of(values: Iterable[Value]) -> int:
    """Return the steps of the scalar back end for visiting all of these."""
    return sum(map(steps_of_value, values))

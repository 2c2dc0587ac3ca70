"""Expressions without a column form: evaluated by the scalar back end, if possible once per distinct node.

Clusters have tens of distinct taints and zones, not thousands. An expression that reads only such facts is
evaluated once per combination of them. Selectors read facts of all nodes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import Type
from kdsl.cluster.objects.node_columns import Mask, none_of
from kdsl.cluster.objects.selectors import integer_of
from kdsl.cluster.objects.taints import Toleration
from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumn
from kdsl.eval.ir import fields_of
from kdsl.eval.scalar import UNSET, Closure
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import EvalError, Value
from kdsl.eval.views import attribute_of
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    AllBad,
    Coded,
    Column,
    ColumnsOutOfSteps,
    ColumnValue,
    NotColumnar,
    Objects,
    Same,
    either,
    encoded,
    of_results,
    take,
)
from kdsl.plan.columns.groups import Digit, grouped
from kdsl.plan.columns.node_groups import Collect, distinct_digits
from kdsl.plan.columns.node_items import has_value, lists_of, tolerated

_BAD = EvalError("bad in another column")


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """The slots of the node, and of the lazy variables that belong to it."""

    node: int
    resets: tuple[int, ...]


class Fallback:
    """Evaluates an expression by the scalar back end, once per distinct combination of its inputs.

    The inputs are the variables of the macros and functions around it, and what it reads of the node:
    `collectors` add these reads if the variables have one value for all rows, and in any case. `slots` is
    None if it does not read the node. `captured` are the slots of the variables, each with the attributes
    that are read of it, None for the value as a whole.
    """

    def __init__(
        self,
        closure: Closure,
        type_: Type,
        captured: Mapping[int, frozenset[str] | None],
        slots: NodeSlots | None = None,
        collectors: tuple[Collect | None, Collect | None] = (None, None),
    ) -> None:
        self._closure = closure
        self._type = type_
        self._captured = captured
        self._slots = slots
        self._collectors = collectors

    def __call__(self, batch: Batch) -> ColumnValue:
        coded: dict[int, Coded] = {}
        inputs: list[Coded] = []
        for slot, attributes in self._captured.items():
            value = batch.columns[slot]
            if isinstance(value, Same):
                batch.frame[slot] = value.value
            else:
                coded[slot] = encoded(value)
                inputs += _inputs(coded[slot], attributes)
        frame, closure, slots = batch.frame, self._closure, self._slots
        if not coded and slots is None:
            try:
                return Same(closure(frame))
            except EvalError:
                raise AllBad from None
        own = [] if slots is None else distinct_digits(self._collectors[bool(coded)], batch)

        info, rows = batch.snapshot.info, batch.rows
        # Each row begins with the steps of the batch, and finally that pays for the most expensive one.
        outer: Meter = frame[-1]
        meter = frame[-1] = Meter.of(max(outer.left, 0))
        least = meter.limit

        def answer(row: int) -> Value:
            nonlocal least
            for slot, column in coded.items():
                frame[slot] = column.values[column.codes[row]]
            if slots is not None:
                frame[slots.node] = info(int(rows[row]))
                for slot in slots.resets:
                    frame[slot] = UNSET
            if meter.left < 0 and outer.is_of_each:
                # One row ran out, which makes all others useless.
                raise ColumnsOutOfSteps
            least, meter.left = min(least, meter.left), meter.limit
            return closure(frame)

        try:
            return once_per_group(batch, inputs, own, answer, self._type)
        finally:
            frame[-1] = outer
            # A row that ran out is bad and goes to the scalar back end; the other rows go on.
            batch.spend(meter.limit - max(min(least, meter.left), 0))


def attributes_read(expr: TypedExpr, slot: int) -> frozenset[str] | None:
    """Return the attributes that an expression reads of a variable; None if it may read any."""
    read = fields_of(expr, slot)
    return frozenset([attribute_of(each.field) for each in read]) if read else None


def _inputs(value: Coded, attributes: frozenset[str] | None) -> list[Coded]:
    """Return the columns in which rows differ if their values do in these attributes."""
    if not isinstance(value, Objects) or attributes is None or value.bad is not None:
        return [value]
    columns = [value.read(each) for each in sorted(attributes)]
    return [value] if None in columns else [encoded(take(each, value.codes)) for each in columns if each]


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
            # A traceback refers to this frame, which refers to the error: a cycle for the collector.
            results.append(error.with_traceback(None))
    return of_results(results, type_, codes)


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


_LABELS: Final = "labels"


class BatchColumns:
    """Columns of the nodes of a batch; see `NodeColumns`."""

    def __init__(self, batch: Batch) -> None:
        self._facts = batch.facts
        self.rows = batch.rows

    def __len__(self) -> int:
        return len(self.rows)

    def has_label(self, key: str) -> Mask:
        found: Mask = self._facts.key(_LABELS, key).codes.take(self.rows) != ABSENT
        return found

    def has_label_in(self, key: str, values: Iterable[str]) -> Mask:
        column = self._facts.key(_LABELS, key)
        numbers = column.numbers
        return self._has_code(column, [numbers[value] for value in values if value in numbers])

    def label_numbers(self, key: str) -> tuple[NDArray[np.int64], Mask]:
        column = self._facts.key(_LABELS, key)
        numbers, known = _integers(column)
        codes = column.codes.take(self.rows)
        return numbers.take(codes), known.take(codes)

    def is_named(self, name: str) -> Mask:
        column = self._facts.field("name")
        return self._has_code(column, [column.numbers[name]] if name in column.numbers else [])

    def has_untolerated(self, effects: Iterable[str], tolerations: Sequence[Toleration]) -> Mask:
        column = self._facts.field("taints")
        lists = lists_of(column)
        if not lists.items:
            return none_of(self)
        taints = lists.variable
        chosen = np.logical_or.reduce([has_value(taints, "effect", effect) for effect in effects])
        chosen &= ~tolerated(taints, tolerations)
        return lists.count(chosen).take(column.codes.take(self.rows)) > 0

    def _has_code(self, column: FactColumn, wanted: list[int]) -> Mask:
        is_wanted = np.zeros(len(column.values), np.bool_)
        is_wanted[wanted] = True
        return is_wanted.take(column.codes.take(self.rows))


def _integers(column: FactColumn) -> tuple[NDArray[np.int64], Mask]:
    """Return the integer of each code of a column of texts, and which codes have one."""
    known: tuple[NDArray[np.int64], Mask] | None = column.kept.get(integer_of)
    if known is None or len(known[0]) < len(column.values):
        read = [None if text is None else integer_of(text) for text in column.values]
        numbers = np.array([each or 0 for each in read], np.int64)
        # In one assignment: other threads ask, too.
        known = column.kept[integer_of] = numbers, np.array([each is not None for each in read], np.bool_)
    return known

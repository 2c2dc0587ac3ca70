"""`&&`, `||` and `?:` over columns. Rows that one operand decides are not given to the next; an error counts
only in rows that no other operand decides, as in CEL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import (
    PLAIN,
    AllBad,
    Array,
    Bad,
    Column,
    ColumnValue,
    Mask,
    NotColumnar,
    Same,
    bad_of,
    either,
    rows_of,
    spread,
    take,
    with_bad,
)
from kdsl.plan.columns.kernels import AMOUNT, operands
from kdsl.plan.columns.traced import is_traced

ColumnClosure = Callable[[Batch], ColumnValue]
"""A compiled expression: returns its value for the rows of a batch."""


class OpenRows:
    """The rows of `all` or `exists`: those still open, and those for which an operand failed.

    `decider` is the value that decides a row: false for `all` and `&&`, true for `exists` and `||`.
    """

    def __init__(self, rows: int, decider: bool) -> None:
        self.decider = decider
        self._rows = rows
        self._decided: Bad = None
        self._bad: Bad = None
        self._is_same = True

    def add(self, value: Mask, bad: Bad) -> None:
        """Add the values of one operand; those of decided rows are arbitrary."""
        self._is_same = False
        decides = value if self.decider else ~value
        self._decided = either(self._decided, decides if bad is None else decides & ~bad)
        self._bad = either(self._bad, bad)

    def fail(self, rows: Bad) -> None:
        """Add an operand that failed for these rows, None for all of them."""
        self._is_same = False
        self._bad = either(self._bad, np.ones(self._rows, dtype=np.bool_) if rows is None else rows)

    def open_rows(self) -> Array:
        """Return the rows that are not decided."""
        return np.arange(self._rows) if self._decided is None else rows_of(~self._decided)

    def result(self) -> ColumnValue:
        if self._is_same:
            return Same(not self.decider)
        decided = np.zeros(self._rows, dtype=np.bool_) if self._decided is None else self._decided
        bad = None if self._bad is None else self._bad & ~decided
        return Column(decided if self.decider else ~decided, None if bad is None or not bad.any() else bad)


def _connective(operands: Sequence[ColumnClosure], decider: bool) -> ColumnClosure:
    last = len(operands) - 1

    def evaluate(batch: Batch) -> ColumnValue:
        state: OpenRows | None = None
        among: Array | None = None
        for place, each in enumerate(operands):
            try:
                value = each(batch) if among is None else at_rows(each, batch, among)
            except AllBad:
                state = state or OpenRows(len(batch), decider)
                state.fail(None)
                continue
            if isinstance(value, Same):
                if value.value is decider:
                    if state is None:
                        return value
                    state.add(np.full(len(batch), decider), None)
                    break
                continue
            values, bad = spread(value, len(batch), np.bool_)
            if state is None:
                if place == last:
                    # The other operands are the same for all rows.
                    return value
                state = OpenRows(len(batch), decider)
            state.add(values, bad)
            if place == last:
                break
            if is_traced(values):
                continue
            open_rows = state.open_rows()
            if not len(open_rows):
                break
            if len(open_rows) * 2 < len(batch if among is None else among):
                among = open_rows
        return Same(not decider) if state is None else state.result()

    return evaluate


def conjunction(operands: Sequence[ColumnClosure]) -> ColumnClosure:
    return _connective(operands, False)


def disjunction(operands: Sequence[ColumnClosure]) -> ColumnClosure:
    return _connective(operands, True)


def choose(condition: ColumnClosure, yes: ColumnClosure, no: ColumnClosure) -> ColumnClosure:
    """Return `condition ? yes : no`; each branch is evaluated for its own rows."""

    def evaluate(batch: Batch) -> ColumnValue:
        chosen = condition(batch)
        if isinstance(chosen, Same):
            return yes(batch) if chosen.value is True else no(batch)
        values, bad = spread(chosen, len(batch), np.bool_)
        first: Array | None = None
        second: Array | None = None
        if not is_traced(values):
            first, second = rows_of(values), rows_of(~values)
            if not len(second):
                return with_bad(yes(batch), bad)
            if not len(first):
                return with_bad(no(batch), bad)
        return with_bad(_merged(values, _branch(yes, batch, first), _branch(no, batch, second)), bad)

    return evaluate


def _branch(closure: ColumnClosure, batch: Batch, index: Array | None) -> ColumnValue | None:
    """Return a branch as `at_rows`; None if it fails for all rows."""
    try:
        return closure(batch) if index is None else at_rows(closure, batch, index)
    except AllBad:
        return None


def at_rows(closure: ColumnClosure, batch: Batch, index: Array) -> ColumnValue:
    """Return the value of an operand that is evaluated for some rows, with arbitrary values in the others."""
    value = closure(batch.part(index))
    if isinstance(value, Same):
        return value
    places = np.zeros(len(batch), np.intp)
    places[index] = np.arange(len(index))
    return take(value, places)


def _merged(condition: Mask, yes: ColumnValue | None, no: ColumnValue | None) -> ColumnValue:
    """Merge two branches: of one plain type, or amounts."""
    known = [value for value in (yes, no) if value is not None]
    if not known:
        raise AllBad
    bad = either(_failing(condition, yes), _failing(~condition, no))
    if len(known) == 1:
        return with_bad(known[0], bad)
    # INVARIANT: both branches have one type; if the type is open, no column code reads the value.
    dtype = _dtype_of(known[0]) or _dtype_of(known[1])
    if dtype is None:
        raise NotColumnar
    (one, other), _, scale = operands(known, dtype)
    return Column(np.where(condition, one, other), bad, scale)


def _dtype_of(value: ColumnValue) -> Any:
    """Return the type of a value's array; None if it has none."""
    if isinstance(value, Column):
        return AMOUNT if value.scale else value.values.dtype.type
    return PLAIN.get(value.value.__class__) if isinstance(value, Same) else None


def _failing(chosen: Mask, value: ColumnValue | None) -> Bad:
    bad = None if value is None else bad_of(value)
    return chosen if value is None else None if bad is None else chosen & bad

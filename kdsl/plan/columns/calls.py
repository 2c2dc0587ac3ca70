"""Calls over columns, by a kernel."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Final, cast

from kdsl.check.model.typed import CallOf
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.scalar.meter import CHARACTERS, has_weight, steps_of_value
from kdsl.eval.values import EvalError
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import AllBad, Coded, ColumnValue, Items, NotColumnar, Numbers, Same
from kdsl.plan.columns.kernels import Kernel
from kdsl.plan.columns.logic import ColumnClosure
from kdsl.plan.columns.numbers import NUMBERS, is_numbers, numbers_of

_SHARED_EQUALITY: Final = {"equals": operator.eq, "not_equals": operator.ne}
"""`==` and `!=` of two values of one type that all rows share, for the types of `kernels.EQUALITY`."""


def call_over_columns(expr: CallOf, args: Sequence[ColumnClosure], kernel: Kernel | None) -> ColumnClosure:
    """Return a call of a library function."""
    # Comparing two values that columns may hold takes no steps.
    equality = _SHARED_EQUALITY.get(expr.overload)
    scalar = equality or IMPLEMENTATIONS[expr.overload]
    weighs = equality is None and has_weight(expr.function, (arg.type for arg in expr.args))
    of_numbers = NUMBERS.get(expr.overload)

    def call(batch: Batch) -> ColumnValue:
        values = [arg(batch) for arg in args]
        for value in values:
            if value.__class__ is not Same:
                break
        else:
            return of_shared(batch, cast("list[Same]", values))
        if of_numbers is not None:
            values = list(map(numbers_of, values))
            if any(map(is_numbers, values)):
                batch.spend(sum(map(steps_of_column, values)))
                return _paid(of_numbers(len(batch), values), batch)
        if kernel is None:
            raise NotColumnar
        if weighs:
            batch.spend(sum(map(steps_of_column, values)))
        return _paid(kernel(len(batch), values), batch)

    def of_shared(batch: Batch, values: list[Same]) -> Same:
        same = [value.value for value in values]
        try:
            result = scalar(*same)
        except EvalError:
            raise AllBad from None
        if weighs:
            batch.spend(sum(map(steps_of_value, [*same, result])))
        return Same(result)

    return call


def _paid(result: ColumnValue, batch: Batch) -> ColumnValue:
    """Pay for a new list, as the scalar back end does."""
    if result.__class__ is Numbers:
        batch.spend(steps_of_column(result) // CHARACTERS)
    return result


def steps_of_column(value: ColumnValue) -> int:
    """Return the steps for visiting a value, in the row with the highest cost: at least those of the scalar
    back end for any row.
    """
    match value:
        case Same(value=only):
            return steps_of_value(only)
        case Coded(values=known):
            return max(map(steps_of_value, known), default=0)
        case Items(entries=entries):
            return len(entries) + sum(steps_of_column(entry.value) for entry in entries)
        case Numbers(values=cells):
            return int(cells.shape[1])
    return 0

"""Calls of the functions of rule files over columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kdsl.eval.values import Value
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Coded, ColumnValue, Same, bad_of, either, with_bad
from kdsl.plan.columns.distinct import Fallback
from kdsl.plan.columns.logic import Operand

MAX_VALUES: Final = 4
"""The most values of an argument for which a function is called by value."""


def call_fn(
    args: Sequence[tuple[int, Operand]],
    body: Operand,
    blank: list[Value],
    by_value: Callable[[], Fallback] | None,
) -> Operand:
    """Call a function with arguments by slot; `blank` is its empty frame.

    `by_value` returns the function by the scalar back end, None where the function takes the node.
    """

    def call(batch: Batch) -> ColumnValue:
        batch.spend()
        columns = {slot: arg(batch) for slot, arg in args}
        frame = blank.copy()
        frame[-1] = batch.frame[-1]
        if by_value is not None and _has_few_values(columns.values()):
            return by_value()(batch.inside(columns, frame))
        # All arguments are evaluated before the body, even unread ones.
        return with_bad(body(batch.inside(columns, frame)), either(*map(bad_of, columns.values())))

    return call


def _has_few_values(args: Iterable[ColumnValue]) -> bool:
    """Return whether a function is faster by value than by row: only one argument varies, over few values."""
    coded = [arg for arg in args if not isinstance(arg, Same)]
    return len(coded) == 1 and isinstance(coded[0], Coded) and len(coded[0].values) <= MAX_VALUES

"""The steps of a function over columns: at least the steps of the scalar back end for any row."""

from __future__ import annotations

from collections.abc import Iterable

from kdsl.eval.scalar.meter import steps_of_value
from kdsl.eval.values import Value
from kdsl.plan.columns.column import Coded, ColumnValue, Items, Numbers, Same


def steps_of_column(value: ColumnValue) -> int:
    """Return the steps for visiting a value, in the row with the highest cost."""
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


def steps_of(values: Iterable[Value]) -> int:
    """Return the steps of the scalar back end for visiting all of these."""
    return sum(map(steps_of_value, values))

"""The steps of a function over columns: at least the steps of the scalar back end for any row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kdsl.eval.scalar.meter import CHARACTERS, Meter, spend_on
from kdsl.eval.values import Optional, Value
from kdsl.plan.columns.column import Coded, ColumnValue, Items, Numbers, Same

_PLENTY: Final = 1 << 62


def steps_of_column(value: ColumnValue) -> int:
    """Return the steps for visiting a value, in the row with the highest cost."""
    match value:
        case Same(value=only):
            return _steps_of_one(only)
        case Coded(values=known):
            return max(map(_steps_of_one, known), default=0)
        case Items(entries=entries):
            return len(entries) + sum(steps_of_column(entry.value) for entry in entries)
        case Numbers(values=cells):
            return int(cells.shape[1])
    return 0


def steps_of(values: Iterable[Value]) -> int:
    """Return the steps of the scalar back end for visiting all of these."""
    return sum(map(_steps_of_one, values))


def _steps_of_one(value: Value) -> int:
    if value.__class__ is Optional:
        value = value.value
    if value.__class__ is str:
        return len(value) // CHARACTERS
    meter = Meter.of(_PLENTY)
    spend_on([meter], [value])
    return _PLENTY - meter.left

"""The functions of typical pods and the free cards of a node, over columns: `fragmentation` and `room`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.room import Room
from kdsl.cluster.devices.typical import Fragmentation
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Coded, Column, ColumnValue, NotColumnar, Numbers, Same, either, spread
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.numbers import numbers_of

CardMeasure = Callable[..., NDArray[np.float64]]
"""Measures nodes by their free CPU, free parts of cards, the codes of their models, the models, and any
further arguments.
"""

MEASURES: Final[Mapping[str, Callable[[Sequence[Any]], CardMeasure]]] = {
    "fragmentation": lambda typical: Fragmentation.of(typical).of_all,
    "room": lambda typical: Room.of(typical).of_all,
}


def over_cards(function: str, args: Sequence[Operand]) -> Operand:
    """Return a function of `MEASURES` for each row, from the operands of its arguments."""
    measure_of = MEASURES[function]

    def evaluate(batch: Batch) -> ColumnValue:
        typical, cpu, free, model, *others = [arg(batch) for arg in args]
        free = numbers_of(free)
        further = [other.value for other in others if isinstance(other, Same)]
        if not isinstance(typical, Same) or not isinstance(free, Numbers) or len(further) < len(others):
            raise NotColumnar
        rows = len(batch)
        milli, bad = spread(cpu, rows, np.int64)
        match model:
            case Coded(codes=codes, values=models, bad=unknown):
                bad = either(bad, unknown)
            case Same(value=str(only)):
                codes, models = np.zeros(rows, np.intp), [only]
            case _:
                raise NotColumnar
        batch.spend(len(typical.value) + free.values.shape[1])
        filled = np.arange(free.values.shape[1]) < free.sizes[:, None]
        parts = np.where(filled, free.values, 0)
        known = [each if isinstance(each, str) else "" for each in models]
        found = measure_of(typical.value)(milli, parts, codes, known, *further)
        return Column(found, either(bad, free.bad))

    return evaluate

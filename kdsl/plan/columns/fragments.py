"""`fragmentation` over columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdsl.cluster.devices.typical import Fragmentation
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.column import Coded, Column, ColumnValue, NotColumnar, Numbers, Same, either, spread
from kdsl.plan.columns.logic import Operand
from kdsl.plan.columns.numbers import numbers_of

FRAGMENTATION = "fragmentation"


def fragmentation(args: Sequence[Operand]) -> Operand:
    """Return the fragmentation of each row, from the operands of the function's arguments."""

    def evaluate(batch: Batch) -> ColumnValue:
        typical, cpu, free, model = [arg(batch) for arg in args]
        free = numbers_of(free)
        if not isinstance(typical, Same) or not isinstance(free, Numbers):
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
        found = Fragmentation.of(typical.value).of_all(milli, parts, codes, known)
        return Column(found, either(bad, free.bad))

    return evaluate

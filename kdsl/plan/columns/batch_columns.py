"""The facts of a batch's nodes in the form that selectors read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node_columns import Mask
from kdsl.cluster.objects.selectors import integer_of
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumn
from kdsl.plan.columns.batch import Batch
from kdsl.plan.columns.node_lists import lists_of

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

    def has_taint(self, condition: Callable[[Taint], bool]) -> Mask:
        column = self._facts.field("taints")
        lists = lists_of(column)
        chosen = np.fromiter(map(condition, lists.items), np.bool_, len(lists.items))
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

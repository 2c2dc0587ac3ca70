"""Distinct objects, such as the taints of all nodes or the cards of a cluster, with attributes as columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.plan.columns.column import PLAIN, Coded, Column, Int64s, Objects

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class DistinctObjects(Generic[T]):
    """Objects by number: those with equal keys, and so with equal attributes that rules read, have one."""

    def __init__(self) -> None:
        self.objects: list[T] = []
        self._numbers: dict[Hashable, int] = {}
        self._columns: dict[str, tuple[int, Column | Coded]] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def number(self, keys: Iterable[Hashable], objects: Iterable[T]) -> Int64s:
        """Return the numbers of objects by their keys."""
        found = numbered(self._numbers, keys)
        if len(self._numbers) > len(self.objects):
            for number, each in zip(found.tolist(), objects, strict=True):
                if number == len(self.objects):
                    self.objects.append(each)
        return found

    def variable(self, numbers: NDArray[np.integer[Any]]) -> Objects:
        """Return a variable that goes through the objects with these numbers."""
        return Objects(numbers, self.objects, read=self._column)

    def _column(self, attribute: str) -> Column | Coded | None:
        """Return an attribute of all objects; None if it is neither a number nor a text."""
        read, column = self._columns.get(attribute, (0, None))
        if read < len(self.objects):
            column = _extended(column, [getattr(each, attribute) for each in self.objects[read:]])
            if column is not None:
                # In one assignment: other threads ask, too.
                self._columns[attribute] = len(self.objects), column
        return column


def _extended(column: Column | Coded | None, values: Sequence[Any]) -> Column | Coded | None:
    """Return a column with more values, of which the texts are coded; None for other values."""
    if isinstance(values[0], str):
        known = column if isinstance(column, Coded) else Coded(np.zeros(0, np.intp), ())
        numbers = {text: number for number, text in enumerate(known.values)}
        return Coded(np.concatenate((known.codes, numbered(numbers, values))), tuple(numbers))
    if values[0].__class__ not in PLAIN:
        return None
    more = np.array(values)
    return Column(np.concatenate((column.values, more)) if isinstance(column, Column) else more)


def numbered(numbers: dict[K, int], values: Iterable[K]) -> Int64s:
    """Return the number of each value; new values get the next ones."""
    return np.array([numbers.setdefault(each, len(numbers)) for each in values], np.int64)

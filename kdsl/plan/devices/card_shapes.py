"""The shapes of cards by number: the different cards of a cluster as columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import SHAPE_FIELDS, Card, Shape
from kdsl.plan.columns.column import Coded, Column
from kdsl.plan.devices.identity import IdentityAnswer

K = TypeVar("K", bound=Hashable)


class AskedCard(Struct, frozen=True, eq=False):
    """A card, its answers of identity tests, and the number of its shape."""

    card: Card
    answer: IdentityAnswer
    shape: int


class CardShapes:
    """The numbers of shapes of cards, and the fields of numbered shapes as columns."""

    def __init__(self) -> None:
        self.numbers: dict[Shape, int] = {}
        self._columns: dict[str, tuple[int, Column | Coded]] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, attribute: str, shapes: NDArray[np.intp]) -> Column | Coded | None:
        """Return an attribute of cards of these shapes; None for one that is not part of a shape."""
        if attribute not in SHAPE_FIELDS:
            return None
        read, column = self._columns.get(attribute, (0, None))
        if column is None or read < len(self.numbers):
            place = SHAPE_FIELDS.index(attribute)
            new = [shape[place] for shape in islice(self.numbers, read, None)]
            column = _extended(column, new)
            self._columns[attribute] = len(self.numbers), column
        if isinstance(column, Column):
            return Column(column.values[shapes])
        return Coded(column.codes[shapes], column.values)


def _extended(column: Column | Coded | None, values: Sequence[Any]) -> Column | Coded:
    """Return a column with more values, of which the texts are coded."""
    if not isinstance(values[0], str):
        more = np.array(values)
        return Column(np.concatenate((column.values, more)) if isinstance(column, Column) else more)
    known = column if isinstance(column, Coded) else Coded(np.zeros(0, np.intp), ())
    numbers = {text: number for number, text in enumerate(known.values)}
    return Coded(np.concatenate((known.codes, numbered(numbers, values))), tuple(numbers))


def numbered(numbers: dict[K, int], values: Iterable[K]) -> NDArray[np.int64]:
    """Return the number of each value; new values get the next ones."""
    return np.array([numbers.setdefault(each, len(numbers)) for each in values], np.int64)

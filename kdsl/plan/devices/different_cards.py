"""The different cards of a cluster by number, and their fields as columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import SHAPE_FIELDS, Card
from kdsl.plan.columns.column import Coded, Column
from kdsl.plan.devices.demand import CardKey
from kdsl.plan.devices.identity import IdentityAnswer

K = TypeVar("K", bound=Hashable)


class AskedCard(Struct, frozen=True, eq=False):
    """A card with its number, and the answers of identity tests about it."""

    card: Card
    answer: IdentityAnswer
    number: int


class DifferentCards:
    """Cards by number: those of a kind with equal keys, and so with equal shapes, have one number."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self._numbers: dict[tuple[str, CardKey], int] = {}
        self._columns: dict[str, tuple[int, Column | Coded]] = {}

    def __len__(self) -> int:
        return len(self.cards)

    def number(self, kind: str, key: Callable[[Card], CardKey], cards: Sequence[Card]) -> NDArray[np.int64]:
        """Return the numbers of cards of a kind."""
        found = numbered(self._numbers, [(kind, key(card)) for card in cards])
        for number, card in zip(found.tolist(), cards, strict=True):
            if number == len(self.cards):
                self.cards.append(card)
        return found

    def column(self, attribute: str, numbers: NDArray[np.intp]) -> Column | Coded | None:
        """Return an attribute of some cards; None for one that is not part of a shape."""
        if attribute not in SHAPE_FIELDS:
            return None
        read, column = self._columns.get(attribute, (0, None))
        if column is None or read < len(self.cards):
            column = _extended(column, [getattr(card, attribute) for card in self.cards[read:]])
            self._columns[attribute] = len(self.cards), column
        if isinstance(column, Column):
            return Column(column.values[numbers])
        return Coded(column.codes[numbers], column.values)


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

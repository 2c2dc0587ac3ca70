"""Nodes that are alike for identity tests that only look for the names of cards in lists of the pod.

One node is asked for all that are alike, so a pod that names cards costs as much as it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kdsl.base.change_log import ChangeLog
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.values import Value
from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.memo.answers import ByRow

RowCards = tuple[Sequence[Card], tuple[IdentityAnswer, ...]]
"""The cards of a row, and the answers of those identity tests that read no pod."""
INT32 = np.dtype(np.int32)


class AlikeRows:
    """Rows of a live snapshot by the fields of their cards that tests read beside names; cards by name."""

    def __init__(
        self, live: LiveSnapshot, log: ChangeLog[int], fields: Sequence[str], cards: Callable[[int], RowCards]
    ) -> None:
        self._fields, self._cards = fields, cards
        self._classes = ByRow(live, INT32, log)
        self._numbers: dict[Hashable, int] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._places: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)

    def __len__(self) -> int:
        """Return the number of different rows so far."""
        return len(self._numbers)

    def numbers(self, rows: Rows, sought: Iterable[Iterable[Value]]) -> NDArray[np.int64]:
        """Return a number for each row, equal only for rows that are alike for these lists."""
        self._classes.refresh()
        found = self._classes.get(rows, self._compute)[0].astype(np.int64)
        named: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
        for number, names in enumerate(sought):
            for name in names:
                for row, place in self._places.get(name, ()) if isinstance(name, str) else ():
                    named[row].add((number, place))
        if named:
            numbers = dict[Hashable, int]()
            for at in np.isin(rows, list(named)).nonzero()[0].tolist():
                key = int(found[at]), frozenset(named[int(rows[at])])
                found[at] = -1 - numbers.setdefault(key, len(numbers))
        return found

    def _compute(self, rows: Rows) -> NDArray[np.int32]:
        return np.array([self._class(row) for row in rows.tolist()], np.int32)

    def _class(self, row: int) -> int:
        cards, answers = self._cards(row)
        for place, name in enumerate(self._names.pop(row, ())):
            self._places[name].discard((row, place))
            if not self._places[name]:
                del self._places[name]
        self._names[row] = names = tuple([card.id for card in cards])
        for place, name in enumerate(names):
            self._places[name].add((row, place))
        # The steps of a test grow with the length of a name.
        read = [
            (len(card.id) // CHARACTERS, *[getattr(card, field) for field in self._fields]) for card in cards
        ]
        return self._numbers.setdefault((answers, tuple(read)), len(self._numbers))

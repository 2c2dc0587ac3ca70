"""The cards of all nodes as arrays, kept up to date by row: what `node.cards` is for many nodes at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot

CardsOf: TypeAlias = Callable[[NodeInfo], tuple[Card, ...]]
"""Returns the cards of a node, with the parts of its pods taken."""

PLAIN_FIELDS: Final = frozenset(
    ("index", "numa", "slots", "used", "memory", "used_memory", "cores", "used_cores")
)
"""The attributes of cards that have an array: whole numbers."""


def no_cards(node: NodeInfo) -> tuple[Card, ...]:
    """Return the cards of a node for a profile without devices: none."""
    return ()


class CardTable:
    """The cards of each row. `sizes` is how many a row has, `widest` the most that a row has had; a field
    has a row for each node and a column for each card, 0 where there is none.
    """

    def __init__(self, live: LiveSnapshot, cards_of: CardsOf) -> None:
        self._live = live
        self._cards_of = cards_of
        self._changed = ChangedRows()
        self._lock = Lock()
        self.sizes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.widest = 0
        self._fields: dict[str, NDArray[np.int64]] = {}

    def refresh(self) -> None:
        """Read the cards of the nodes again that changed since the last time."""
        with self._lock:
            live = self._live
            changed = self._changed.take(live.fact_changes, live.usage_changes)
            if changed is None:
                self.sizes = np.zeros(len(live.names), np.int64)
                self.widest, self._fields = 0, {}
                changed = live.order.tolist()
            elif len(live.names) > len(self.sizes):
                self._resize(len(live.names), self.widest)
            for row in changed:
                self._write(row, self._cards_of(live.info(row)) if live.names[row] else ())

    def field(self, name: str) -> NDArray[np.int64]:
        """Return one of `PLAIN_FIELDS` of all cards."""
        with self._lock:
            known = self._fields.get(name)
            if known is None:
                known = self._fields[name] = np.zeros((len(self.sizes), self.widest), np.int64)
                for row in self._live.order.tolist():
                    _fill(known, row, name, self._cards_of(self._live.info(row)))
            return known

    def _write(self, row: int, cards: tuple[Card, ...]) -> None:
        if len(cards) > self.widest:
            self._resize(len(self.sizes), len(cards))
        self.sizes[row] = len(cards)
        for name, cells in self._fields.items():
            cells[row, len(cards) :] = 0
            _fill(cells, row, name, cards)

    def _resize(self, rows: int, width: int) -> None:
        more = (0, rows - len(self.sizes))
        self.sizes = np.pad(self.sizes, more)
        for name, cells in self._fields.items():
            self._fields[name] = np.pad(cells, (more, (0, width - self.widest)))
        self.widest = width


def _fill(cells: NDArray[np.int64], row: int, name: str, cards: tuple[Card, ...]) -> None:
    """Write a field of the cards of a row."""
    for place, card in enumerate(cards):
        cells[row, place] = getattr(card, name)


def card_table(snapshot: LiveSnapshot, cards_of: CardsOf) -> CardTable:
    """Return the cards of all nodes for the devices of a profile, kept with the snapshot."""
    place = (CardTable, cards_of)
    table = snapshot.kept.get(place)
    if table is None:
        table = snapshot.kept.setdefault(place, CardTable(snapshot, cards_of))
    assert isinstance(table, CardTable)
    table.refresh()
    return table

"""Which domain each row is in: the values of one label, numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.changes import ChangedRows
from kdsl.cluster.snapshot import LiveSnapshot

NO_DOMAIN: Final = -1
_SPARE: Final = 64


class DomainColumn:
    """The domains of one topology key. `ids[row]` is the number of the row's domain, `NO_DOMAIN` where the
    node lacks the label; `numbers` are the numbers by the label's value.

    Numbers are good for one `generation`: values that no node has any more are dropped now and then.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.generation = 0
        self.ids: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._numbers: dict[str, int] = {}
        self._changed = ChangedRows()

    @property
    def numbers(self) -> Mapping[str, int]:
        return self._numbers

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self._numbers)

    def refresh(self, live: LiveSnapshot) -> None:
        """Bring the column up to a live snapshot: rows whose facts changed are looked at again."""
        rows = self._changed.take(live.fact_changes)
        if rows == []:
            return
        self.ids = grown(self.ids, len(live.names), NO_DOMAIN)
        if len(self._numbers) > 2 * len(live.names) + _SPARE:
            self.generation += 1
            self._numbers.clear()
            rows = None
        chosen = range(len(live.names)) if rows is None else rows
        key, names, numbers, info = self.key, live.names, self._numbers, live.info
        values = [info(row).labels.get(key) if names[row] else None for row in chosen]
        self.ids[chosen] = [
            NO_DOMAIN if value is None else numbers.setdefault(value, len(numbers)) for value in values
        ]


def grown(column: NDArray[np.generic], rows: int, fill: int) -> NDArray[Any]:
    """Return the column with so many rows, `fill` in the new ones."""
    missing = rows - len(column)
    if missing <= 0:
        return column
    return np.concatenate((column, np.full(missing, fill, dtype=column.dtype)))

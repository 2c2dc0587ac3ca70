"""The statuses of joined predicates, by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.hooks.status import StatusTable
from kdsl.plan.compile.failures import StatusNumbers

_IDS: Final = np.dtype(np.int32)
_LAST: Final = np.iinfo(np.int32).max
MAX_STATUSES: Final = 4096
"""The most distinct statuses that are kept; reasons that name the node would grow without end."""


class JoinedStatuses:
    """The statuses of the predicates `names`, by number, and the position of the predicate of each."""

    def __init__(self, names: Iterable[str]) -> None:
        self.statuses = StatusTable()
        self._positions = {name: position for position, name in enumerate(names)}
        self._verdicts = {name: StatusNumbers(self.statuses, name) for name in self._positions}
        self._column = np.array([_LAST], _IDS)

    @property
    def is_full(self) -> bool:
        return len(self.statuses) >= MAX_STATUSES

    def of(self, name: str) -> StatusNumbers:
        """Return the numbering of one predicate's statuses."""
        return self._verdicts[name]

    def positions(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the positions of the predicates of these statuses; success is last."""
        column = self._column
        if len(column) < len(self.statuses):
            added = [self._positions[status.plugin] for status in self.statuses[len(column) :]]
            column = self._column = np.append(column, np.array(added, _IDS))
        return column.take(ids)

    def first(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the status number of the predicate that runs first, for each node."""
        found: NDArray[np.int32] = np.where(self.positions(other) < self.positions(one), other, one)
        return found

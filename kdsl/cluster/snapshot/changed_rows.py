"""The changed rows in order, so that a reader updates those alone, however many rows there are."""

from __future__ import annotations

_SPARE = 1024
"""The number of changes that are kept in addition to one for each row."""


class Changes:
    """A log of changed rows. `position` is its end; it only rises."""

    def __init__(self) -> None:
        self.position = 0
        self._first = 0
        self._rows: list[int] = []

    def note(self, row: int, rows: int) -> None:
        """Log a change of `row`, one of `rows`.

        A reader that has missed more changes than rows reads all rows.
        """
        self._rows.append(row)
        self.position += 1
        kept = self.position - self._first
        if kept > 2 * (rows + _SPARE):
            dropped = kept // 2
            del self._rows[:dropped]
            self._first += dropped

    def since(self, position: int) -> list[int] | None:
        """Return the rows that changed after `position`, perhaps repeated; None for a dropped position."""
        if position == self.position:
            return []
        if position < self._first:
            return None
        return self._rows[position - self._first :]


class ChangedRows:
    """The position of a reader in some logs, which must be the same in every call."""

    def __init__(self) -> None:
        self._positions: list[int] = []

    def take(self, *logs: Changes) -> list[int] | None:
        """Return the rows that changed since the last call, each once; None where any may have changed."""
        positions = self._positions
        if not positions:
            self._positions = [log.position for log in logs]
            return None
        found: list[int] | None = []
        for at, log in enumerate(logs):
            position = positions[at]
            if position != log.position:
                positions[at] = log.position
                rows = log.since(position)
                found = None if found is None or rows is None else found + rows
        # Most often one row has changed, in one log.
        return found if found is None or len(found) < 2 else list(dict.fromkeys(found))

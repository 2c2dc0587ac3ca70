"""The changed rows in order, so that a reader updates those alone, however many rows there are."""

from __future__ import annotations

from kdsl.base.change_log import ChangeLog


class ChangedRows:
    """The position of a reader in some logs, which must be the same in every call."""

    def __init__(self) -> None:
        self._positions: list[int] = []

    def take(self, *logs: ChangeLog[int]) -> list[int] | None:
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

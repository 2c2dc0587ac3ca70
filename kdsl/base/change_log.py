"""A log of changes, for readers that follow them at their own pace."""

from __future__ import annotations

from typing import Generic, TypeVar

_SPARE = 1024
"""The number of changes that are kept in addition to one for each thing."""

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """The latest changes in order. `position` is the end of the log; it only rises."""

    def __init__(self) -> None:
        self.position = 0
        self._first = 0
        self._changes: list[T] = []

    def note(self, change: T, things: int) -> None:
        """Log a change of one of so many things.

        A reader that has missed more changes than there are things reads all of them.
        """
        self._changes.append(change)
        self.position += 1
        kept = self.position - self._first
        if kept > 2 * (things + _SPARE):
            dropped = kept // 2
            del self._changes[:dropped]
            self._first += dropped

    def since(self, position: int) -> list[T] | None:
        """Return the changes after `position`, perhaps many of one thing; None for a dropped position."""
        if position == self.position:
            return []
        return None if position < self._first else self._changes[position - self._first :]

    def start_over(self) -> None:
        """Drop all changes, so that each reader reads all things."""
        self._changes.clear()
        self.position += 1
        self._first = self.position

"""Counts of writes for metrics."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol


class Write(StrEnum):
    """A kind of write that waits in a queue."""

    STATUS = "status"
    DELETE = "delete"
    EVENT = "event"


class WriteObserver(Protocol):
    """Counts writes. It must not raise or block, and is called from any thread."""

    def queue(self, write: Write, length: int) -> None:
        """Set the number of waiting writes."""
        ...

    def event_dropped(self, reason: str) -> None:
        """Count an event that is not recorded: `dropped` for a full queue, `failed` after all tries."""
        ...

    def preempted(self, is_done: bool, seconds: float) -> None:
        """Count a preemption whose victims were deleted, or that failed, after so many seconds."""
        ...


class _Unobserved:
    """Counts nothing."""

    def queue(self, write: Write, length: int) -> None:
        return None

    def event_dropped(self, reason: str) -> None:
        return None

    def preempted(self, is_done: bool, seconds: float) -> None:
        return None


UNOBSERVED: Final[WriteObserver] = _Unobserved()

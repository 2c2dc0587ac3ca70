"""Future events, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from enum import IntEnum
from typing import Any


class What(IntEnum):
    """The kinds of events. Events of one time happen in this order, equal ones in the order of their entry:
    room is given back before it is asked for.
    """

    END = 0
    DELETE = 1
    NODE = 2
    READY = 3
    RETURN = 4
    ARRIVAL = 5


class Agenda:
    """Events at times in nanoseconds."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, What, int, Any]] = []
        self._entered = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next(self) -> int | None:
        """Return the time of the next event, None if there is none."""
        return self._heap[0][0] if self._heap else None

    def add(self, at: int, what: What, about: Any) -> None:
        heapq.heappush(self._heap, (at, what, self._entered, about))
        self._entered += 1

    def take(self, at: int) -> Iterator[tuple[What, Any]]:
        """Yield and remove the events up to a time, with those that are entered meanwhile."""
        while self._heap and self._heap[0][0] <= at:
            _, what, _, about = heapq.heappop(self._heap)
            yield what, about

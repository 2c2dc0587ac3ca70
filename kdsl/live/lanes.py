"""Who sends next: bindings before evictions, evictions before conditions, conditions before events.

All writes share the connections to one API server. Thousands of conditions must not keep a binding waiting,
so every kind of request has a lane with a share of its own, and what becomes free goes to the highest lane
that waits. What waits is bounded by those who send: each has its own limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Lane(StrEnum):
    """The lanes, the highest first."""

    BIND = "bind"
    EVICT = "evict"
    STATUS = "status"
    EVENT = "event"


CAPACITY: Final = 64
SHARES: Final[Mapping[Lane, int]] = MappingProxyType(
    {Lane.BIND: 48, Lane.EVICT: 32, Lane.STATUS: 24, Lane.EVENT: 16}
)
"""The most requests of a lane that are under way at once. Bindings leave room, so that nothing starves.

Conditions and events together leave room for bindings and evictions: on a server whose writes are slow a turn
that has to be given back first takes seconds.
"""


class Lanes:
    """Lets at most `capacity` requests be under way at once. It belongs to the thread of the event loop."""

    def __init__(self, capacity: int = CAPACITY, shares: Mapping[Lane, int] = SHARES) -> None:
        self._capacity, self._shares = capacity, shares
        self._under_way = 0
        self._used = dict.fromkeys(Lane, 0)
        self._waiting: dict[Lane, deque[asyncio.Future[None]]] = {lane: deque() for lane in Lane}

    def waiting(self, lane: Lane) -> int:
        """Return how many wait in a lane."""
        return len(self._waiting[lane])

    async def enter(self, lane: Lane) -> None:
        """Wait for a turn; it ends with `leave`."""
        if self._has_room(lane) and not self._is_ahead(lane):
            self._take(lane)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[lane].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave(lane)  # the turn came, and nobody takes it
            elif turn in self._waiting[lane]:
                self._waiting[lane].remove(turn)
            raise

    def leave(self, lane: Lane) -> None:
        """End a turn, and give it to who waits in the highest lane."""
        self._under_way -= 1
        self._used[lane] -= 1
        for other in Lane:
            waiting = self._waiting[other]
            while waiting and self._has_room(other):
                turn = waiting.popleft()
                if not turn.cancelled():
                    self._take(other)
                    turn.set_result(None)

    def _has_room(self, lane: Lane) -> bool:
        return self._under_way < self._capacity and self._used[lane] < self._shares[lane]

    def _is_ahead(self, lane: Lane) -> bool:
        """Tell whether somebody waits in the lane already."""
        return bool(self._waiting[lane])

    def _take(self, lane: Lane) -> None:
        self._under_way += 1
        self._used[lane] += 1

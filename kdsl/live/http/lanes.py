"""Priorities of requests: bindings before evictions, evictions before conditions, conditions before events.

All writes share the connections to one API server. Thousands of conditions must not delay a binding, so every
kind of request has a lane with its own limit, and a free connection goes to the highest waiting lane. Each
sender bounds its own queue.
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
"""The most concurrent requests of a lane. Bindings leave room, so that no lane starves.

Conditions and events together leave room for bindings and evictions: with slow writes a binding would
otherwise wait seconds for a connection.
"""


class Lanes:
    """Limits the concurrent requests to `capacity`. For the thread of the event loop."""

    def __init__(self, capacity: int = CAPACITY, shares: Mapping[Lane, int] = SHARES) -> None:
        self._capacity, self._shares = capacity, shares
        self._under_way = 0
        self._used = dict.fromkeys(Lane, 0)
        self._waiting: dict[Lane, deque[asyncio.Future[None]]] = {lane: deque() for lane in Lane}

    def waiting(self, lane: Lane) -> int:
        """Return the number of requests that wait in a lane."""
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
                self.leave(lane)  # the turn came after the request was cancelled
            elif turn in self._waiting[lane]:
                self._waiting[lane].remove(turn)
            raise

    def leave(self, lane: Lane) -> None:
        """End a turn, and give it to the highest waiting lane."""
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
        """Return whether a request of the lane waits already."""
        return bool(self._waiting[lane])

    def _take(self, lane: Lane) -> None:
        self._under_way += 1
        self._used[lane] += 1

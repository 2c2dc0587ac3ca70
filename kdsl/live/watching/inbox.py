"""A bounded queue of changes and messages from the event loop's thread to the scheduling thread.

Reflectors put changes in, and wait while it is full; so the server waits too. If the scheduling thread lags
behind, only the last of several changes of an object is delivered.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kdsl.live.watching.changes import ObjectChange

CAPACITY: Final = 20_000
"""The most waiting changes."""
COALESCE_FROM: Final = 1_000
"""The number of waiting changes beyond which only the last change of each object is kept."""

Message: TypeAlias = Callable[[], None]
"""The result of a write, posted by the writer: the scheduling thread calls it."""

_Object: TypeAlias = tuple[str, str, str]


class Inbox:
    """Changes in the order of their resource, and messages in their own order.

    An object of another uid is another object: a drop and a put of one name are both delivered.
    """

    def __init__(self, capacity: int = CAPACITY, coalesce_from: int = COALESCE_FROM) -> None:
        self._capacity = capacity
        self._coalesce_from = coalesce_from
        self._filled = threading.Condition()
        self._changes: OrderedDict[int, ObjectChange] = OrderedDict()
        self._latest: dict[_Object, int] = {}
        self._messages: deque[Message] = deque()
        self._number = 0
        self._taken = 0
        self._done = 0
        self._replaced = 0
        self._is_closed = False
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    async def put(self, changes: Sequence[ObjectChange]) -> int:
        """Add changes; wait while the inbox is full. Return the number of the last one: see `done`."""
        number = 0
        rest = changes
        while rest:
            added, number = self._add(rest)
            rest = rest[added:]
            if rest:
                await self._wait_for_room()
        return number

    def post(self, message: Message) -> None:
        """Add a message, from any thread, without waiting.

        The poster bounds the work under way: each write posts once.
        """
        with self._filled:
            self._messages.append(message)
            self._filled.notify()

    def wake(self) -> None:
        """Wake the scheduling thread, which then checks everything."""
        self.post(lambda: None)

    def take(self, limit: int, timeout: float | None = None) -> tuple[list[Message], list[ObjectChange]]:
        """Return all messages and up to `limit` changes; for the scheduling thread only.

        Waits up to `timeout` seconds for the first one, None: without limit. The next call marks the changes
        of this one as done. Both lists are empty after the time limit, or if the inbox is closed.
        """
        with self._filled:
            self._done = self._taken
            if not self._has_any:
                self._filled.wait_for(lambda: self._has_any or self._is_closed, timeout)
            messages = list(self._messages)
            self._messages.clear()
            changes = [self._pop() for _ in range(min(limit, len(self._changes)))]
            waiters = tuple(self._waiters) if len(self._changes) < self._capacity else ()
            if waiters:
                self._waiters.clear()
        for loop, waiter in waiters:
            _wake(loop, waiter)
        return messages, changes

    def close(self) -> None:
        """Stop `take` from waiting; the contents can still be taken."""
        with self._filled:
            self._is_closed = True
            self._filled.notify_all()

    @property
    def done(self) -> int:
        """Return the number of the last change up to which the scheduling thread has handled all."""
        return self._done

    @property
    def backlog(self) -> int:
        """Return the number of waiting changes."""
        return len(self._changes)

    @property
    def replaced(self) -> int:
        """Return the number of changes that a later change of their object replaced."""
        return self._replaced

    @property
    def _has_any(self) -> bool:
        return bool(self._changes or self._messages)

    def _add(self, changes: Sequence[ObjectChange]) -> tuple[int, int]:
        """Add as many changes as there is room for; return their count, and the last number."""
        with self._filled:
            added = 0
            for change in changes:
                known = (change.resource, change.key, change.uid)
                if len(self._changes) > self._coalesce_from and known in self._latest:
                    del self._changes[self._latest.pop(known)]
                    self._replaced += 1
                elif len(self._changes) >= self._capacity:
                    break
                self._number += 1
                self._changes[self._number] = change
                self._latest[known] = self._number
                added += 1
            if added:
                self._filled.notify()
            return added, self._number

    def _pop(self) -> ObjectChange:
        number, change = self._changes.popitem(last=False)
        self._taken = number
        known = (change.resource, change.key, change.uid)
        if self._latest.get(known) == number:
            del self._latest[known]
        return change

    async def _wait_for_room(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        with self._filled:
            if len(self._changes) < self._capacity:
                return
            self._waiters.append((loop, waiter))
        await waiter


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    # A closed loop has no waiting tasks.
    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)

"""Wakes the event loop from the scheduling thread: the thread leaves work to be written and rings."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

_LOG: Final = logging.getLogger(__name__)


class Doorbell:
    """Calls `answer` on the event loop's thread after a ring from any thread.

    Rings before the answer are merged into one. Before `connect` and after `disconnect` rings have no effect;
    `connect` answers earlier rings once.
    """

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_rung = False

    def connect(self) -> None:
        """Answer on the running event loop."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            if self._has_rung:
                self._loop.call_soon(self._open)

    def disconnect(self) -> None:
        """Stop answering."""
        with self._lock:
            self._loop = None

    def ring(self) -> None:
        """Have the event loop call `answer` soon. Never blocks."""
        with self._lock:
            if self._has_rung:
                return
            self._has_rung = True
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._open)

    def _open(self) -> None:
        with self._lock:
            self._has_rung = False
        self._answer()


class Crew:
    """Concurrent tasks, at most `limit`; `is_free` is called whenever one ends."""

    def __init__(self, name: str, limit: int, is_free: Callable[[], None]) -> None:
        self._name, self._limit, self._is_free = name, limit, is_free
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        """Return whether another task may start."""
        return len(self._tasks) < self._limit

    @property
    def is_idle(self) -> bool:
        """Return whether no task runs."""
        return not self._tasks

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, on the event loop's thread."""
        task = asyncio.get_running_loop().create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def close(self) -> None:
        """Cancel the running tasks, and wait until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            _LOG.error("%s ended with an error", self._name, exc_info=error)
        self._is_free()

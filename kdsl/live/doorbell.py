"""Between threads: the scheduling thread leaves something to be written and rings, the event loop looks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

_LOOK_AGAIN: Final = 0.01
_LOG: Final = logging.getLogger(__name__)


class Doorbell:
    """Has `answer` called on the event loop's thread after a ring from any thread.

    Rings that come before it is answered are one. Before `connect` and after `disconnect` nobody answers;
    what rang before is answered once connected.
    """

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_rung = False

    def connect(self) -> None:
        """Answer on the event loop that runs now."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
            if self._has_rung:
                self._loop.call_soon(self._open)

    def disconnect(self) -> None:
        """Answer no more."""
        with self._lock:
            self._loop = None

    def ring(self) -> None:
        """Have it answered soon. Never blocks."""
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
    """Tasks that run at once, at most `limit`; `is_free` is called when one ends and there is room again."""

    def __init__(self, name: str, limit: int, is_free: Callable[[], None]) -> None:
        self._name, self._limit, self._is_free = name, limit, is_free
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        """Tell whether another task may start."""
        return len(self._tasks) < self._limit

    @property
    def is_idle(self) -> bool:
        """Tell whether no task runs."""
        return not self._tasks

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, on the event loop's thread."""
        task = asyncio.get_running_loop().create_task(work, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def close(self) -> None:
        """Cancel what runs, and wait until it has ended."""
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


class Worker(Protocol):
    """Something that carries out what was left for it."""

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits and nothing is under way."""
        ...


async def until_idle(seconds: float, *workers: Worker) -> bool:
    """Wait until all is carried out, at most so many seconds; tell whether it is."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not all(worker.is_idle for worker in workers):
        if loop.time() >= end:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True

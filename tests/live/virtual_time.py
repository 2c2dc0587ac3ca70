"""An event loop whose time goes by as fast as nothing happens: tests of hours take seconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")

_STEP = 0.002
_PATIENCE = 5.0
"""Real seconds that a thread may take: a test that waits longer is stuck."""


class _Selector(selectors.SelectSelector):
    """Moves the time on where the loop would wait; in step with real time while a thread is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.busy: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            found = super().select(_PATIENCE)
            assert found, "nothing happens any more"
            return found
        if self.busy():
            # A thread may wait for the loop, or the loop for the thread: both go on, in small steps.
            found = super().select(_STEP)
            timeout = min(timeout, _STEP)
        self.time += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own, in seconds from 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        self._threads = 0
        self._virtual.busy = lambda: self._threads > 0
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.time

    def run_in_executor(self, executor: Executor | None, func: Any, *args: Any) -> Any:
        self._threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: self._end())
        return future

    def _end(self) -> None:
        self._threads -= 1


class VirtualClock:
    """The loop's time as nanoseconds since the Unix epoch."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: int = 1_763_868_483 * 10**9) -> None:
        self._loop, self._start = loop, start

    def now(self) -> int:
        return self._start + round(self._loop.time() * 10**9)


def run_virtually(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a loop with virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())

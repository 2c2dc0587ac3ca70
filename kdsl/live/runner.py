"""The scheduling thread: runs the loop until stopped, then finishes the bindings under way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kdsl.live.loop import SchedulingLoop

DRAIN: Final = 5.0
"""The time limit for bindings under way, in seconds."""
_TICK: Final = 0.05
_LOG: Final = logging.getLogger(__name__)


class LoopThread:
    """One thread for one loop. Call `start` and `stop` from another thread, once each."""

    def __init__(
        self,
        loop: SchedulingLoop,
        claim: Callable[[], None] = lambda: None,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        """`claim` is called on the new thread before anything else."""
        self._loop, self._claim, self._stopwatch = loop, claim, stopwatch
        self._is_stopping = threading.Event()
        self._drain = DRAIN
        self._thread = threading.Thread(target=self._run, name="kdsl-scheduling", daemon=True)

    def start(self) -> None:
        """Run the loop."""
        self._thread.start()

    def stop(self, drain: float = DRAIN) -> None:
        """Stop deciding; the thread ends when no binding is under way, after at most `drain` seconds.

        Does not wait for that: see `join`.
        """
        self._drain = drain
        self._loop.stop_deciding()
        self._is_stopping.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; return whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        """Return whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._claim()
        while not self._is_stopping.is_set():
            self._turn()
        end = self._stopwatch() + self._drain
        while not self._loop.is_drained and self._stopwatch() < end:
            self._turn(_TICK)

    def _turn(self, longest: float | None = None) -> None:
        try:
            if longest is None:
                self._loop.turn()
            else:
                self._loop.turn(longest)
        except Exception:  # noqa: BLE001 - without this thread there are no decisions
            # The pause prevents a flood of log lines.
            _LOG.exception("a turn of the scheduling loop ended with an error")
            self._is_stopping.wait(_TICK)

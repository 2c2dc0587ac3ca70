"""The scheduling thread: runs the loop until it is told to stop, and ends what is under way by then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kdsl.live.loop import SchedulingLoop

DRAIN: Final = 5.0
"""Seconds that bindings under way are waited for."""
_TICK: Final = 0.05
_LOG: Final = logging.getLogger(__name__)


class LoopThread:
    """One thread for one loop. `start` and `stop` are for another thread; each is called once."""

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
        """Begin to run the loop."""
        self._thread.start()

    def stop(self, drain: float = DRAIN) -> None:
        """Decide no more pods; end the thread when no binding is under way, `drain` seconds from now at most.

        Does not wait for that: see `join`.
        """
        self._drain = drain
        self._loop.stop_deciding()
        self._is_stopping.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; tell whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        """Tell whether the thread runs."""
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
        except Exception:  # noqa: BLE001 - without the thread nothing would be decided any more
            # The pause keeps it from filling the log.
            _LOG.exception("a turn of the scheduling loop ended with an error")
            self._is_stopping.wait(_TICK)

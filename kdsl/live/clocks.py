"""The clock of the live loop: it never jumps, so that no pod waits an hour because somebody set the time."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Starts with the machine's time and goes on by itself, in nanoseconds since the Unix epoch.

    What others read, such as conditions and locks, takes its times from `SystemClock`.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def now(self) -> int:
        """Return the time."""
        return self._steady() + self._offset

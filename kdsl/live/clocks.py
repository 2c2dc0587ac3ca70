"""The clock of the live loop. It never jumps, so a changed system time delays no pod."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Starts with the system time and then advances monotonically, in nanoseconds since the Unix epoch.

    Times that other programs read, such as conditions and locks, come from `SystemClock`.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def now(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return self._steady() + self._offset

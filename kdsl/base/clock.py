"""Time as an argument: kdsl reads the machine's clock only through a `Clock`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Returns the time as nanoseconds since the Unix epoch (UTC)."""

    def now(self) -> int: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns()


class ManualClock:
    """A clock that moves only when `advance` is called: for simulation and tests."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, nanoseconds: int) -> None:
        """Move the clock forward; a negative step raises ValueError."""
        if nanoseconds < 0:
            raise ValueError("a clock does not run backwards")
        self._now += nanoseconds


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

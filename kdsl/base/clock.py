"""Time as an argument: kdsl reads the machine's clock only through a `Clock`. And durations as texts."""

from __future__ import annotations

import time
from typing import Final, Protocol

_UNITS: Final = ((3_600 * 10**9, "h"), (60 * 10**9, "m"))
_FRACTIONS: Final = ((10**6, "ms"), (10**3, "µs"))


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


def go_duration(nanoseconds: int) -> str:
    """Write a duration as Go does: `1h0m0s`, `15m0s`, `2.5s`, `100ms`."""
    if nanoseconds < 10**9:
        for size, unit in _FRACTIONS:
            if nanoseconds >= size:
                return _decimal(nanoseconds, size) + unit
        return f"{nanoseconds}ns" if nanoseconds else "0s"
    text = ""
    for size, unit in _UNITS:
        if nanoseconds >= size or text:
            text += f"{nanoseconds // size}{unit}"
            nanoseconds %= size
    return text + _decimal(nanoseconds, 10**9) + "s"


def _decimal(value: int, unit: int) -> str:
    digits = len(str(unit)) - 1
    return f"{value // unit}.{value % unit:0{digits}}".rstrip("0").rstrip(".")

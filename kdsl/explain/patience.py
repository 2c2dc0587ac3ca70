"""The time limit for the optional parts of an explanation: comparing nodes and trying changes runs the rules
again, and the time of each run depends on the rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 15
"""A usual explanation takes a hundredth of it. An explanation that reaches the limit reports that."""

Stopwatch = Callable[[], int]
"""Returns nanoseconds from an arbitrary start."""


class Patience:
    """A time limit that starts now. `ran_out` is true if work was left out because of it."""

    def __init__(self, stopwatch: Stopwatch = time.perf_counter_ns, seconds: int = SECONDS) -> None:
        self._stopwatch = stopwatch
        self._end = stopwatch() + seconds * 10**9
        self.ran_out = False

    def is_over(self) -> bool:
        """Return whether the time is over and the next piece of work is to be left out."""
        if self._stopwatch() < self._end:
            return False
        self.ran_out = True
        return True

"""How long an explanation looks for what nobody needs for the decision: nodes are compared and changes are
tried by asking the rules again, and what each answer takes is up to the rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 15
"""A usual explanation takes a hundredth of it. One that is given up says so."""

Stopwatch = Callable[[], int]
"""Tells nanoseconds from any beginning."""


class Patience:
    """Runs out after so many seconds from now on. `ran_out` tells whether something was given up for it."""

    def __init__(self, stopwatch: Stopwatch = time.perf_counter_ns, seconds: int = SECONDS) -> None:
        self._stopwatch = stopwatch
        self._end = stopwatch() + seconds * 10**9
        self.ran_out = False

    def is_over(self) -> bool:
        """Return whether to give up now what is to be done next."""
        if self._stopwatch() < self._end:
            return False
        self.ran_out = True
        return True

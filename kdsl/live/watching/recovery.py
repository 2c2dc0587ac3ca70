"""Waiting for an unreachable server: delays grow, and end when the server answers again.

Every reflector has its own `RetryDelays`; all of them share a `Recovery`. Times are seconds of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

FIRST_DELAY: Final = 0.8
LAST_DELAY: Final = 30.0
QUIET: Final = 120.0
"""Seconds without a failure after which delays are short again."""

_PROBE_EVERY: Final = 0.5
_SPREAD: Final = 0.3
"""Seconds over which waiting reflectors resume, so that they do not all resume at once."""


class RetryDelays:
    """Delays of 0.8 s, 1.6 s and so on up to 30 s, each times 1 to 2."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._delay = FIRST_DELAY
        self._failed_at = float("-inf")

    def next(self) -> float:
        """Return the seconds to wait after a failure."""
        now = asyncio.get_running_loop().time()
        if now - self._failed_at > QUIET:
            self.reset()
        delay = self._delay * (1 + self._random.random())
        self._delay = min(LAST_DELAY, self._delay * 2)
        self._failed_at = now + delay
        return delay

    def reset(self) -> None:
        """Start again with the shortest delay."""
        self._delay = FIRST_DELAY


class Recovery:
    """Probes a server repeatedly, while at least one caller waits for it."""

    def __init__(self, probe: Callable[[], Awaitable[bool]], random: Random) -> None:
        self._probe = probe
        self._random = random
        self._back: asyncio.Future[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._waiting = 0

    async def wait(self, seconds: float) -> bool:
        """Wait for `seconds`, or until the server answers; return whether it does."""
        loop = asyncio.get_running_loop()
        if self._back is None or self._back.done():
            self._back = loop.create_future()
        back = self._back
        self._waiting += 1
        if self._probing is None or self._probing.done():
            self._probing = loop.create_task(self._probe_until_back())
        try:
            await asyncio.wait((back,), timeout=seconds)
        finally:
            self._waiting -= 1
        if not back.done():
            return False
        await asyncio.sleep(_SPREAD * self._random.random())
        return True

    async def _probe_until_back(self) -> None:
        while True:
            await asyncio.sleep(_PROBE_EVERY * (1 + self._random.random()))
            if not self._waiting:
                return
            if await self._probe():
                if self._back is not None and not self._back.done():
                    self._back.set_result(None)
                return

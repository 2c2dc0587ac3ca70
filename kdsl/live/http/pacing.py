"""The rate limit of requests: a token bucket that slows down when the server reports too many requests.

Each `client` has its own. Times are seconds of the loop.
"""

from __future__ import annotations

import asyncio
from typing import Final

DEFAULT_QPS: Final = 2000.0
DEFAULT_BURST: Final = 4000
"""Far above kube-scheduler's 50 and 100: priority and fairness protect the server, not limits of its clients.
"""

_SLOWEST: Final = 1 / 64
_RECOVERY: Final = 30.0
"""Seconds from standstill to full speed."""
_HOLD: Final = 1.0
"""Seconds within which several answers "too many" count as one."""


class Pace:
    """A token bucket of `burst` requests that fills by `qps` per second; a `qps` of 0 means no limit."""

    def __init__(self, qps: float = DEFAULT_QPS, burst: int = DEFAULT_BURST) -> None:
        if qps < 0 or burst < 1:
            raise ValueError("qps is at least 0, burst at least 1")
        self._qps = qps
        self._burst = float(burst)
        self._tokens = self._burst
        self._at: float | None = None
        self._share = 1.0
        self._slowed_at = float("-inf")

    async def take(self) -> float:
        """Wait for the turn of a request; return the waited seconds."""
        if not self._qps:
            return 0.0
        self._refill(asyncio.get_running_loop().time())
        # Tokens below zero are promised to waiting requests: turns come in order.
        self._tokens -= 1
        if self._tokens >= 0:
            return 0.0
        wait = -self._tokens / (self._qps * self._share)
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self._tokens += 1
            raise
        return wait

    def slow_down(self) -> None:
        """Halve the rate after the server reported too many requests. It recovers by itself."""
        now = asyncio.get_running_loop().time()
        self._refill(now)
        if now - self._slowed_at >= _HOLD:
            self._slowed_at = now
            self._share = max(_SLOWEST, self._share / 2)
            self._tokens = min(self._tokens, self._qps * self._share)

    @property
    def speed(self) -> float:
        """Return the present limit in requests per second."""
        return self._qps * self._share

    def _refill(self, now: float) -> None:
        passed = 0.0 if self._at is None else now - self._at
        self._at = now
        self._tokens = min(self._burst, self._tokens + passed * self._qps * self._share)
        if self._share < 1:
            self._share = min(1.0, self._share + passed / _RECOVERY)

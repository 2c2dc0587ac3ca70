"""Limits of concurrent calls, of work at a time, and of the bytes of bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1 << 20
SMALL: Final = 128 << 10
"""The bytes of a body that always have room: large bodies must not keep usual calls away."""
_CHECK_EVERY: Final = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits: `calls` concurrent calls, work on `at_once` of them, `body` bytes in one body and `bodies` in
    all, beyond which only bodies of at most `SMALL` bytes have room. A body must arrive within `body_within`
    seconds.
    """

    calls: int = 256
    at_once: int = 8
    body: int = 64 * MEBIBYTE
    bodies: int = 128 * MEBIBYTE
    body_within: float = 10.0


class FullError(Exception):
    """A call beyond a limit; the text names the limit."""


class Gate:
    """Counts calls and bytes, on the event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.calls = self.bytes = 0
        self._slots = asyncio.Semaphore(limits.at_once)
        self._is_closed = False

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Count a call until it ends; raise FullError beyond the limit."""
        self.check()
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    def check(self) -> None:
        """Raise FullError if no further call may begin."""
        if self._is_closed:
            raise FullError("the extender ends")
        if self.calls >= self.limits.calls:
            raise FullError(f"{self.calls} calls are under way")

    async def close(self, within: float) -> None:
        """Refuse further calls, and wait up to `within` seconds for the current ones."""
        self._is_closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.calls:
                    await asyncio.sleep(_CHECK_EVERY)

    @contextmanager
    def holding(self) -> Iterator[Held]:
        """Count the bytes of a body until the call ends."""
        held = Held(self)
        try:
            yield held
        finally:
            self.bytes -= held.bytes

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a place among the calls that are worked on, in the order of arrival."""
        async with self._slots:
            yield


class Held:
    """The bytes of one body."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.bytes = 0

    def add(self, count: int) -> None:
        """Count further bytes; raise FullError beyond the limit of all bodies, if this one is not small."""
        gate = self._gate
        if self.bytes + count > SMALL and gate.bytes + count > gate.limits.bodies:
            raise FullError(f"the bodies of calls under way have {gate.bytes} bytes")
        gate.bytes += count
        self.bytes += count

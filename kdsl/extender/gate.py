"""How much is under way at once: calls, those that are worked on, and bytes of their bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1 << 20
_LOOK_EVERY: Final = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """`calls` are under way at most, `at_once` of them are worked on; a body has `body` bytes at most, all
    bodies together `bodies`. Bodies have `body_within` seconds to come.
    """

    calls: int = 256
    at_once: int = 8
    body: int = 64 * MEBIBYTE
    bodies: int = 128 * MEBIBYTE
    body_within: float = 10.0


class FullError(Exception):
    """A call that is not let in now; the text says what is full."""


class Gate:
    """Counts what is under way, on the event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.calls = self.bytes = 0
        self._slots = asyncio.Semaphore(limits.at_once)
        self._is_closed = False

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Let a call in, and out again; raise FullError."""
        if self._is_closed:
            raise FullError("the extender ends")
        if self.calls >= self.limits.calls:
            raise FullError(f"{self.calls} calls are under way")
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    async def close(self, within: float) -> None:
        """Let nobody in any more, and wait up to so many seconds until all are out."""
        self._is_closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.calls:
                    await asyncio.sleep(_LOOK_EVERY)

    @contextmanager
    def holding(self) -> Iterator[Held]:
        """Count the bytes of a body until the call is over."""
        held = Held(self)
        try:
            yield held
        finally:
            self.bytes -= held.bytes

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until the call is one of those that are worked on: first come, first served."""
        async with self._slots:
            yield


class Held:
    """The bytes of one body."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.bytes = 0

    def add(self, count: int) -> None:
        """Count bytes more; raise FullError."""
        gate = self._gate
        if gate.bytes + count > gate.limits.bodies:
            raise FullError(f"the bodies of calls under way have {gate.bytes} bytes")
        gate.bytes += count
        self.bytes += count

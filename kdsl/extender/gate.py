"""Limits of concurrent calls, of work at a time, and of the bytes of bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final

MEBIBYTE: Final = 1 << 20
SMALL: Final = 128 << 10
"""The bytes of a body that always have room: large bodies must not keep usual calls away."""
_CHECK_EVERY: Final = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits: `calls` concurrent calls, work on `at_once` of them, `body` bytes in one body and `bodies` in
    all, beyond which only bodies of at most `SMALL` bytes have room. A body must arrive within `body_within`
    seconds. A larger one that is `patience` seconds late for that gives up its room when another needs it.
    """

    calls: int = 256
    at_once: int = 8
    body: int = 64 * MEBIBYTE
    bodies: int = 128 * MEBIBYTE
    body_within: float = 10.0
    patience: float = 1.0

    @property
    def rate(self) -> float:
        """The bytes per second at which the largest body arrives in time."""
        return self.body / self.body_within


class FullError(Exception):
    """A call beyond a limit; the text names the limit."""


class Gate:
    """Counts calls and bytes, on the event loop."""

    def __init__(self, limits: Limits, now: Callable[[], float] = monotonic) -> None:
        self.limits, self.now = limits, now
        self._arriving: set[Held] = set()
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
            held.arrived()
            self.bytes -= held.bytes

    def begin(self, held: Held) -> None:
        """Let a body give up its room from now on, if it comes slowly."""
        self._arriving.add(held)

    def end(self, held: Held) -> None:
        """Keep the room of a body until its call ends."""
        self._arriving.discard(held)

    def make_room(self, count: int, needs: Held) -> bool:
        """Take the room of slow bodies until further bytes of one have some; return whether they have."""
        now, others = self.now(), self._arriving - {needs}
        slow = [each for each in others if each.bytes > SMALL and each.due < now]
        slow.sort(key=lambda each: each.due)
        for each in slow:
            if self.has_room(count):
                break
            each.give_up()
        return self.has_room(count)

    def has_room(self, count: int) -> bool:
        """Return whether further bytes are within the limit of all bodies."""
        return self.bytes + count <= self.limits.bodies

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a place among the calls that are worked on, in the order of arrival."""
        async with self._slots:
            yield


class Held:
    """The bytes of one body, and when the next of them are due: each that comes gives a little more time."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._stop: Callable[[], None] | None = None
        self.bytes = 0
        self.due = gate.now() + gate.limits.patience
        self.is_given_up = False

    def arriving(self, stop: Callable[[], None]) -> None:
        """Begin to read the body; `stop` ends that where another body needs its room."""
        self._stop = stop
        self._gate.begin(self)

    def arrived(self) -> None:
        """End the reading of the body."""
        self._stop = None
        self._gate.end(self)

    def add(self, count: int) -> None:
        """Count further bytes; raise FullError beyond the limit of all bodies, if this one is not small."""
        gate = self._gate
        is_small = self.bytes + count <= SMALL
        if not is_small and not gate.has_room(count) and not gate.make_room(count, self):
            raise FullError(f"the bodies of calls under way have {gate.bytes} bytes")
        gate.bytes += count
        self.bytes += count
        now, limits = gate.now(), gate.limits
        self.due = min(self.due + count / limits.rate, now + limits.patience)

    def give_up(self) -> None:
        """Stop the reading of the body, and leave its room to others."""
        self.is_given_up = True
        self._gate.bytes -= self.bytes
        self.bytes = 0
        if self._stop is not None:
            self._stop()
        self.arrived()

"""Waits for workers of the event loop."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

_CHECK_EVERY: Final = 0.01


class Worker(Protocol):
    """A worker that carries out queued work."""

    @property
    def is_idle(self) -> bool:
        """Return whether no work is queued or under way."""
        ...


async def until_idle(seconds: float, *workers: Worker) -> bool:
    """Wait until all work is done, at most `seconds`; return whether it is."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not all(worker.is_idle for worker in workers):
        if loop.time() >= end:
            return False
        await asyncio.sleep(_CHECK_EVERY)
    return True

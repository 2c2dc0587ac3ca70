"""Waits of pods for their claims: for volumes that others make, and devices that drivers prepare.

The watch reports changes (`notice`); claims are also read again periodically, in case the watch is late.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from kdsl.live.writing.doorbell import Doorbell

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 15.0
"""Seconds between two reads of a claim that does not change."""

Check: TypeAlias = Callable[[], Awaitable[bool]]
"""Returns whether a claim need not be waited for any more; may raise."""


class StoppedError(Exception):
    """The pod was preempted, or is gone."""

    def __init__(self) -> None:
        super().__init__("the pod is not to be bound any more")


class Waits:
    """The waits under way. `is_stopped` returns whether the pod with a uid is not to be bound any more."""

    def __init__(self, is_stopped: Callable[[str], bool] = lambda pod: False) -> None:
        self._is_stopped = is_stopped
        self._lock = threading.Lock()
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._changed: set[str] = set()
        self._doorbell = Doorbell(self._wake)

    def start(self) -> None:
        """Start receiving changes, on the running event loop."""
        self._doorbell.connect()

    def notice(self, key: str) -> None:
        """Note that the claim `namespace/name` changed, or that the pod with this uid was stopped; from any
        thread. Most of them are not waited for.
        """
        with self._lock:
            if key not in self._waiting:
                return
            self._changed.add(key)
        self._doorbell.ring()

    async def settle(
        self, pod: str, checks: dict[str, Check], seconds: float, changed: asyncio.Event
    ) -> None:
        """Wait until all checks are true, `seconds` at most, and remove those from `checks` that are.

        `changed` is from `listening`. Raises StoppedError if the pod with the uid `pod` was stopped.
        """
        clock = asyncio.get_running_loop().time
        end, pause = clock() + seconds, FIRST_PAUSE
        while checks and (left := end - clock()) > 0:
            if self._is_stopped(pod):
                raise StoppedError
            if not await _comes(changed, min(pause, left)):
                pause = min(2 * pause, LONGEST_PAUSE)
            changed.clear()
            for key in [key for key, check in checks.items() if await check()]:
                del checks[key]

    @contextmanager
    def listening(self, pod: str, claims: Iterable[str]) -> Iterator[asyncio.Event]:
        """Yield an event that is set when one of the claims changes or the pod is stopped.

        Begin before claims are read for the first time: a change after that must not be missed.
        """
        changed, keys = asyncio.Event(), (pod, *claims)
        with self._lock:
            for key in keys:
                self._waiting.setdefault(key, []).append(changed)
        try:
            yield changed
        finally:
            with self._lock:
                for key in keys:
                    self._waiting[key].remove(changed)
                    if not self._waiting[key]:
                        del self._waiting[key]

    def _wake(self) -> None:
        with self._lock:
            events = [event for key in self._changed for event in self._waiting.get(key, ())]
            self._changed.clear()
        for event in events:
            event.set()


async def _comes(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True

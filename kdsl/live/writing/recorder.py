"""Records events in the background: repeated ones are counted, and a full queue drops new ones."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from kdsl.base.clock import Clock
from kdsl.base.visible import visible
from kdsl.live.writing import bodies
from kdsl.live.writing.api import Api
from kdsl.live.writing.doorbell import Crew, Doorbell
from kdsl.live.writing.event_series import QUIET, REFRESH, Series, SeriesBook
from kdsl.live.writing.events import Event, EventsApi, event_name
from kdsl.live.writing.outcomes import Done, Lost, Refused, Result
from kdsl.live.writing.write_counts import UNOBSERVED, Write, WriteObserver

CAPACITY: Final = 10_000
"""The most waiting events."""
IN_FLIGHT: Final = 32
TRIES: Final = 12
_PAUSE: Final = 10.0
"""The shortest pause between tries while the server is unreachable, in seconds; up to a quarter longer."""
_ALREADY_THERE: Final = 409
_LOG: Final = logging.getLogger(__name__)


class EventRecorder:
    """Takes events from any thread and writes them to the API server. `record` never blocks.

    `jitter` returns random numbers from 0 to 1.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        events_api: EventsApi = EventsApi.EVENTS,
        observer: WriteObserver = UNOBSERVED,
        *,
        capacity: int = CAPACITY,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._api, self._clock, self._observer = api, clock, observer
        self._events_api, self._capacity, self._jitter = events_api, capacity, jitter
        self._lock = threading.Lock()
        # Events with their names and times.
        self._waiting: deque[tuple[Event, str, int]] = deque()
        self._last = 0
        # As in Kubernetes' clients: an event of core/v1 is repeated only with the same text.
        self._book = SeriesBook(by_note=events_api is EventsApi.CORE)
        self._late: deque[Series] = deque()
        self._doorbell = Doorbell(self._start_waiting)
        self._crew = Crew("event recorder", IN_FLIGHT, self._start_waiting)
        self._tending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, on the running event loop."""
        self._tending = asyncio.get_running_loop().create_task(self._tend(), name="event series")
        self._doorbell.connect()

    def record(self, event: Event) -> bool:
        """Queue an event; return False if too many wait: then it is dropped, and counted."""
        with self._lock:
            is_full = len(self._waiting) >= self._capacity
            if not is_full:
                # The name contains the time, but no time twice, even if the clock is set back.
                now = self._clock.now()
                self._last = max(now, self._last + 1)
                self._waiting.append((event, event_name(event.regarding.name, self._last), now))
            length = len(self._waiting)
        if is_full:
            self._observer.event_dropped("dropped")
            return False
        self._observer.queue(Write.EVENT, length)
        self._doorbell.ring()
        return True

    @property
    def is_idle(self) -> bool:
        """Return whether no event waits or is under way."""
        return not self._waiting and not self._late and self._crew.is_idle

    async def close(self) -> None:
        """End the work under way, and accept no more."""
        self._doorbell.disconnect()
        if self._tending is not None:
            self._tending.cancel()
            await asyncio.gather(self._tending, return_exceptions=True)
        self._waiting.clear()
        self._late.clear()
        await self._crew.close()

    def _start_waiting(self) -> None:
        """Count waiting events, and send as many due ones as there is room for."""
        while self._crew.has_room:
            series = self._next()
            if series is None:
                return
            if not series.is_sending:
                series.is_sending = True
                self._crew.start(self._send(series))

    def _next(self) -> Series | None:
        now = asyncio.get_running_loop().time()
        while self._waiting:
            event, name, time = self._waiting.popleft()
            self._observer.queue(Write.EVENT, len(self._waiting))
            series = self._book.note(event, name, time, now)
            if series.is_due and not series.is_sending:
                return series
        return self._late.popleft() if self._late else None

    async def _send(self, series: Series) -> None:
        """Send a series, and again if it grew from an event into a series meanwhile."""
        try:
            while True:
                count = series.count if series.sent else 1
                result = await self._patiently(series, count)
                if not isinstance(result, Done):
                    self._give_up(series, result)
                    return
                series.sent = count
                if not series.is_due:
                    return
        finally:
            series.is_sending = False

    async def _patiently(self, series: Series, count: int) -> Result[None]:
        """Send, and repeat while the server is unreachable; any answer ends it."""
        result = await self._write(series, count)
        for _ in range(TRIES - 1):
            if not isinstance(result, Lost):
                break
            await asyncio.sleep(_PAUSE * (1 + self._jitter() / 4))
            result = await self._write(series, count)
            if isinstance(result, Refused) and result.status == _ALREADY_THERE:
                return Done(None)  # an earlier try without an answer has created it
        return result

    async def _write(self, series: Series, count: int) -> Result[None]:
        event, api = series.event, self._events_api
        if count > 1:
            patch = bodies.series_patch(count, series.seen_at, api)
            result = await self._api.patch_event(event.namespace, series.name, patch, api)
            if not (isinstance(result, Refused) and result.is_gone):
                return result
        body = bodies.event(event, series.name, series.made_at, api, count, series.seen_at)
        return await self._api.post_event(event.namespace, body, api)

    def _give_up(self, series: Series, failure: Refused | Lost) -> None:
        self._book.forget(series)
        self._observer.event_dropped("failed")
        about = visible(f"{series.event.namespace}/{series.event.regarding.name}")
        _LOG.warning("event %s of %s is not recorded: %s", series.event.reason, about, failure.text)

    async def _tend(self) -> None:
        """Update the counts of series periodically, and end the quiet ones."""
        rounds = int(REFRESH / QUIET)
        while True:
            for number in range(rounds):
                await asyncio.sleep(QUIET)
                now = asyncio.get_running_loop().time()
                self._late.extend(self._book.finish(now))
                if number == rounds - 1:
                    self._late.extend(self._book.behind())
                self._start_waiting()

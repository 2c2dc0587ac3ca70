"""Which events are one: the same thing, said of the same object again, is a series with a count.

The first is made, the second makes it a series; from then on they are only counted, until the series has been
quiet for a while or is due to be brought up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kdsl.live.events import Event

QUIET: Final = 6 * 60.0
"""Seconds after which a series that nothing was added to is over."""
REFRESH: Final = 30 * 60.0
CAPACITY: Final = 50_000
"""The most events that are remembered; past it the oldest are forgotten."""


class Series:
    """An event that was recorded, and how often since; `sent` is how often the server knows of, 0 for never.

    `seen_at` and `made_at` are by the wall clock in nanoseconds, `noted_at` by the event loop's in seconds.
    """

    __slots__ = ("count", "event", "is_sending", "made_at", "name", "noted_at", "seen_at", "sent")

    def __init__(self, event: Event, name: str, made_at: int, noted_at: float) -> None:
        self.event, self.name, self.made_at, self.noted_at = event, name, made_at, noted_at
        self.seen_at = made_at
        self.count = 1
        self.sent = 0
        self.is_sending = False

    @property
    def is_due(self) -> bool:
        """Tell whether the server is to hear of it now: for the first time, or that it is a series."""
        return self.sent == 0 or (self.sent == 1 and self.count > 1)

    @property
    def is_behind(self) -> bool:
        """Tell whether the server knows of fewer than there were."""
        return self.sent < self.count


class SeriesBook:
    """Remembers events by what makes them one series."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._series: dict[tuple[object, ...], Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def note(self, event: Event, name: str, made_at: int, now: float) -> Series:
        """Count an event, and return its series."""
        found = self._series.get(event.key)
        if found is not None:
            found.count += 1
            found.seen_at, found.noted_at = made_at, now
            return found
        if len(self._series) >= self._capacity:
            del self._series[next(iter(self._series))]
        self._series[event.key] = series = Series(event, name, made_at, now)
        return series

    def forget(self, series: Series) -> None:
        """Let the next event of this kind be the first of its series."""
        if self._series.get(series.event.key) is series:
            del self._series[series.event.key]

    def finish(self, now: float) -> list[Series]:
        """Forget what has been quiet; return what the server is to hear of for the last time."""
        quiet = [each for each in self._series.values() if now - each.noted_at >= QUIET]
        for each in quiet:
            self.forget(each)
        return list(_behind(quiet))

    def behind(self) -> list[Series]:
        """Return all series that the server is to be brought up to date with."""
        return list(_behind(self._series.values()))


def _behind(series: Iterable[Series]) -> Iterator[Series]:
    return (each for each in series if each.sent and each.is_behind)

"""Groups equal events about the same object into a series with a count.

The first event is created, the second one turns it into a series. Later ones are only counted, until the
series was quiet for a while or its count in the API server must be updated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kdsl.live.writing.events import Event

QUIET: Final = 6 * 60.0
"""Seconds without a new event after which a series ends."""
REFRESH: Final = 30 * 60.0
CAPACITY: Final = 50_000
"""The most events kept; the oldest are forgotten first."""


class Series:
    """A recorded event and its count; `sent` is the count that the server has, 0 for none.

    `seen_at` and `made_at` are wall-clock nanoseconds, `noted_at` seconds of the event loop.
    """

    __slots__ = ("count", "event", "is_sending", "key", "made_at", "name", "noted_at", "seen_at", "sent")

    def __init__(
        self, event: Event, name: str, made_at: int, noted_at: float, key: tuple[object, ...]
    ) -> None:
        self.event, self.name, self.made_at, self.noted_at = event, name, made_at, noted_at
        self.key = key
        self.seen_at = made_at
        self.count = 1
        self.sent = 0
        self.is_sending = False

    @property
    def is_due(self) -> bool:
        """Return whether to send it now: it is the first event, or it has become a series."""
        return self.sent == 0 or (self.sent == 1 and self.count > 1)

    @property
    def is_behind(self) -> bool:
        """Return whether the server's count is lower than ours."""
        return self.sent < self.count


class SeriesBook:
    """Keeps events by the key of their series. With `by_note` only events with equal notes are equal."""

    def __init__(self, capacity: int = CAPACITY, *, by_note: bool = False) -> None:
        self._capacity, self._by_note = capacity, by_note
        self._series: dict[tuple[object, ...], Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def note(self, event: Event, name: str, made_at: int, now: float) -> Series:
        """Count an event, and return its series."""
        key = (*event.key, event.note) if self._by_note else event.key
        found = self._series.get(key)
        if found is not None:
            found.count += 1
            found.seen_at, found.noted_at = made_at, now
            return found
        if len(self._series) >= self._capacity:
            del self._series[next(iter(self._series))]
        self._series[key] = series = Series(event, name, made_at, now, key)
        return series

    def forget(self, series: Series) -> None:
        """End a series: the next event of this key begins a new one."""
        if self._series.get(series.key) is series:
            del self._series[series.key]

    def finish(self, now: float) -> list[Series]:
        """End the quiet series; return those whose last count must still be sent."""
        quiet = [each for each in self._series.values() if now - each.noted_at >= QUIET]
        for each in quiet:
            self.forget(each)
        return list(_behind(quiet))

    def behind(self) -> list[Series]:
        """Return all series whose count in the server is too low."""
        return list(_behind(self._series.values()))


def _behind(series: Iterable[Series]) -> Iterator[Series]:
    return (each for each in series if each.sent and each.is_behind)

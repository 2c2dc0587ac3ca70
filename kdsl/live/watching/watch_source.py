"""The part of a client that a reflector uses, and the times of its watches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from kdsl.live.http.messages import HttpAnswer, HttpRequest


class Lines(Protocol):
    """An answer read line by line, such as `kdsl.live.http.http1.LineStream`."""

    async def lines(self, timeout: float) -> list[bytes]:
        """Return the new lines; none at the end. Raises NoAnswerError."""
        ...

    def close(self) -> None:
        """Close the stream."""
        ...


class Source(Protocol):
    """The server of a reflector, such as `kdsl.live.http.client.Client`."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        """Return the answer; raise NoAnswerError."""
        ...

    async def open_lines(self, request: HttpRequest, *, timeout: float) -> HttpAnswer | Lines:
        """Return the stream, or an answer other than 200; raise NoAnswerError."""
        ...


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """Times in seconds. A watch requests a random duration between `shortest` and `longest`, and is abandoned
    `grace` after it; a watch with bookmarks is abandoned after `silence` without data. `opening` is the
    limit for the head of an answer, `listing` for a complete list and for the initial objects of a watch.
    """

    shortest: float = 300.0
    longest: float = 600.0
    grace: float = 30.0
    silence: float = 90.0
    opening: float = 30.0
    listing: float = 120.0


DEFAULT_TIMES: Final = WatchTimes()
BRISK_TIMES: Final = WatchTimes(shortest=30.0, longest=45.0, grace=10.0)
"""For resources whose silence must be detected within a minute: shorter watches, each with a bookmark."""

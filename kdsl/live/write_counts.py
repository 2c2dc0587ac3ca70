"""What is told of writes: how many of each kind, what became of them, how many wait. Metrics listen here."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Protocol


class Write(StrEnum):
    """A kind of request to the API server that is not a list or a watch."""

    BIND = "bind"
    READ = "read"
    STATUS = "status"
    DELETE = "delete"
    POD_ANNOTATIONS = "pod_annotations"
    NODE_ANNOTATIONS = "node_annotations"
    VOLUME = "volume"
    CLAIM = "claim"
    EVENT = "event"
    SERIES = "series"


class WriteOutcome(StrEnum):
    """What became of one.

    `done`, `refused` and `lost` are of requests. Of what was to be written, `skipped` needed no request or
    had nobody to go to any more, `superseded` was overtaken by something newer, `dropped` found its queue
    full, `failed` was given up after all its tries.
    """

    DONE = "done"
    REFUSED = "refused"
    LOST = "lost"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    DROPPED = "dropped"
    FAILED = "failed"


class WriteObserver(Protocol):
    """Somebody who counts writes. It must not raise or block, and is called from any thread."""

    def request(self, write: Write, outcome: WriteOutcome, status: int, seconds: float) -> None:
        """Note a request that took `seconds`; `status` is that of HTTP, 0 where there was no answer."""
        ...

    def count(self, write: Write, outcome: WriteOutcome) -> None:
        """Note what became of something that was to be written."""
        ...

    def queue(self, write: Write, length: int) -> None:
        """Note how many wait."""
        ...


class _Unobserved:
    """Nobody counts."""

    def request(self, write: Write, outcome: WriteOutcome, status: int, seconds: float) -> None:
        return None

    def count(self, write: Write, outcome: WriteOutcome) -> None:
        return None

    def queue(self, write: Write, length: int) -> None:
        return None


UNOBSERVED: Final[WriteObserver] = _Unobserved()

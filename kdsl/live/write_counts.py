"""Counts of writes for metrics: by kind, result and queue length."""

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
    DEVICE_CLAIM = "device_claim"
    EVENT = "event"
    SERIES = "series"


class WriteOutcome(StrEnum):
    """The result of a write.

    `done`, `refused` and `lost` are results of requests. Of queued writes, `skipped` needed no request or
    lost its object, `superseded` was replaced by a newer one, `dropped` found its queue full, `failed` was
    given up after all tries.
    """

    DONE = "done"
    REFUSED = "refused"
    LOST = "lost"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    DROPPED = "dropped"
    FAILED = "failed"


class WriteObserver(Protocol):
    """Counts writes. It must not raise or block, and is called from any thread."""

    def request(self, write: Write, outcome: WriteOutcome, status: int, seconds: float) -> None:
        """Count a request that took `seconds`; `status` is that of HTTP, 0 without an answer."""
        ...

    def count(self, write: Write, outcome: WriteOutcome) -> None:
        """Count the result of a queued write."""
        ...

    def queue(self, write: Write, length: int) -> None:
        """Set the number of waiting writes."""
        ...

    def preempted(self, is_done: bool, seconds: float) -> None:
        """Count a preemption whose victims were deleted, or that failed, after so many seconds."""
        ...


class _Unobserved:
    """Counts nothing."""

    def request(self, write: Write, outcome: WriteOutcome, status: int, seconds: float) -> None:
        return None

    def count(self, write: Write, outcome: WriteOutcome) -> None:
        return None

    def queue(self, write: Write, length: int) -> None:
        return None

    def preempted(self, is_done: bool, seconds: float) -> None:
        return None


UNOBSERVED: Final[WriteObserver] = _Unobserved()

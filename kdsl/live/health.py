"""How well the cluster is known, resource by resource: for `/readyz`, metrics and messages.

The thread of the event loop writes it; any thread may read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ResourceHealth:
    """The state of one resource.

    It `is_synced` once all objects there were have been handled by the scheduling thread. One that
    `is_absent` is not served by this server: it counts as empty. `error` is the last failure, empty when what
    failed works again. `contact` is when the server last said anything of it, in seconds of the loop, None
    for never; `lag` are the seconds since, as long as nothing is heard though something should be.
    """

    resource: str
    is_synced: bool = False
    is_absent: bool = False
    error: str = ""
    contact: float | None = None
    lag: float = 0.0
    objects: int = 0
    events: int = 0
    lists: int = 0
    failures: int = 0
    malformed: int = 0

    @property
    def is_ready(self) -> bool:
        """Tell whether decisions can rest on it."""
        return self.is_synced or self.is_absent


class WatchObserver(Protocol):
    """Counts what watches hear; `kdsl.obs` has one."""

    def heard(self, resource: str, kind: str) -> None:
        """Count an event of a watch (`ADDED`, `BOOKMARK`)."""
        ...

    def synced(self, resource: str, is_synced: bool) -> None:
        """Hear whether a resource was listed and is watched."""
        ...

    def watch_failed(self, resource: str, reason: str) -> None:
        """Count a failure of a list or watch; `reason` is one of a few words, those of `Trouble`."""
        ...


class SilentObserver:
    """Counts nothing."""

    def heard(self, resource: str, kind: str) -> None:
        return None

    def synced(self, resource: str, is_synced: bool) -> None:
        return None

    def watch_failed(self, resource: str, reason: str) -> None:
        return None

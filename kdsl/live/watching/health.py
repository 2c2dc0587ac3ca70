"""The state of each watched resource, for `/readyz`, metrics and messages.

The thread of the event loop writes it; any thread may read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ResourceHealth:
    """The state of one resource.

    `is_synced`: the scheduling thread has handled all initial objects. `is_absent`: this server does not
    serve the resource, so it counts as empty. `error` is the last failure, empty after a success.
    Without `is_renewed` its objects are being listed again, for their JSON.
    """

    resource: str
    is_synced: bool = False
    is_absent: bool = False
    error: str = ""
    objects: int = 0
    lists: int = 0
    failures: int = 0
    malformed: int = 0
    is_renewed: bool = True

    @property
    def is_ready(self) -> bool:
        """Return whether decisions may rely on this resource."""
        return self.is_synced or self.is_absent


class WatchObserver(Protocol):
    """Counts events of watches, such as an observer of `kdsl.obs`."""

    def received(self, resource: str, kind: str) -> None:
        """Count an event of a watch (`ADDED`, `BOOKMARK`)."""
        ...

    def synced(self, resource: str, is_synced: bool) -> None:
        """Note whether a resource was listed and is watched."""
        ...

    def not_watched(self, resource: str) -> None:
        """Note that a resource is not watched any more, or that the server does not have it."""
        ...

    def watch_failed(self, resource: str, reason: str) -> None:
        """Count a failure of a list or watch; `reason` is a value of `Trouble`."""
        ...

"""Writes down how one resource is doing: its reflector tells, `Watches.health` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kdsl.live.health import ResourceHealth, WatchObserver
from kdsl.live.queries import Trouble

_MAX_TEXT: Final = 500
"""Characters of a failure that are kept: a server may say anything."""


class Standing:
    """How a resource is doing. `clock` tells seconds of the loop."""

    def __init__(
        self,
        resource: str,
        observer: WatchObserver,
        clock: Callable[[], float],
        *,
        can_be_absent: bool = True,
    ) -> None:
        self._resource = resource
        self._observer = observer
        self._clock = clock
        self._can_be_absent = can_be_absent
        self._error = ""
        self._contact: float | None = None
        self._synced_at: int | None = None
        self._is_absent = False
        self._objects = self._events = self._lists = self._failures = self._malformed = 0

    def listed(self, objects: int, number: int) -> None:
        """Note a whole list; `number` is that of its last change in the inbox."""
        self._contact, self._error, self._objects = self._clock(), "", objects
        self._lists += 1
        self._is_absent = False
        if self._synced_at is None:
            self._synced_at = number
        self._observer.synced(self._resource, True)

    def connected(self) -> None:
        """Note that the server lets us watch."""
        self._contact, self._error = self._clock(), ""
        self._observer.synced(self._resource, True)

    def event(self, kind: str) -> None:
        """Note an event, a bookmark or an error of a watch."""
        self._events += 1
        self._observer.heard(self._resource, kind[:_MAX_TEXT])

    def heard(self, objects: int) -> None:
        """Note that events were taken in."""
        self._contact, self._objects = self._clock(), objects

    def interrupted(self, reason: str) -> None:
        """Note that a watch broke off, and is taken up at once."""
        self._failures += 1
        self._observer.watch_failed(self._resource, Trouble.NO_ANSWER)

    def failed(self, trouble: Trouble, text: str) -> None:
        """Note a failure after which the reflector waits."""
        self._error = f"{trouble}: {text}"[:_MAX_TEXT]
        self._failures += 1
        # What was once listed is there; that its server does not find it now is a failure like others.
        self._is_absent = self._can_be_absent and trouble is Trouble.ABSENT and not self._lists
        self._observer.watch_failed(self._resource, trouble)
        self._observer.synced(self._resource, False)

    def malformed(self, text: str) -> None:
        """Note an object or a line that cannot be read."""
        self._malformed += 1
        self._error = text[:_MAX_TEXT]
        self._observer.watch_failed(self._resource, Trouble.MALFORMED)

    def health(self, done: int) -> ResourceHealth:
        """Return how it is doing, where the scheduling thread is done with `done` changes."""
        contact = self._contact
        return ResourceHealth(
            resource=self._resource,
            is_synced=self._synced_at is not None and done >= self._synced_at,
            is_absent=self._is_absent,
            error=self._error,
            contact=contact,
            lag=0.0 if contact is None else max(0.0, self._clock() - contact),
            objects=self._objects,
            events=self._events,
            lists=self._lists,
            failures=self._failures,
            malformed=self._malformed,
        )

"""The state of one resource: its reflector records it, `Watches.health` returns it."""

from __future__ import annotations

import logging
from typing import Final

from kdsl.live.watching.health import ResourceHealth, WatchObserver
from kdsl.live.watching.queries import Trouble

_MAX_TEXT: Final = 500
"""The most characters kept of a failure: its text comes from the server."""
_MOST_LOGGED: Final = 100
"""The most unreadable objects and lines of one resource that are logged; all are counted."""
_PASSING: Final = frozenset({Trouble.EXPIRED, Trouble.SHORT, Trouble.TOO_MANY})
"""Failures of every cluster now and then, which the next try ends."""
_LOG: Final = logging.getLogger(__name__)


class Standing:
    """Records the state of a resource."""

    def __init__(self, resource: str, observer: WatchObserver, *, can_be_absent: bool = True) -> None:
        self._resource = resource
        self._observer = observer
        self._can_be_absent = can_be_absent
        self._error = ""
        self._synced_at: int | None = None
        self._renewed_at: int | None = 0
        self._is_absent = False
        self._logged = ""
        self._unreadable: set[str] = set()
        self._objects = self._lists = self._failures = self._malformed = 0

    def listed(self, objects: int, number: int) -> None:
        """Record a complete list; `number` is that of its last change in the inbox."""
        self._error, self._objects = "", objects
        self._lists += 1
        self._is_absent = False
        if self._synced_at is None:
            self._synced_at = number
        if self._renewed_at is None:
            self._renewed_at = number
        self._observer.synced(self._resource, True)
        self._log_recovery()

    def renew(self) -> None:
        """Record that the next list has more of each object."""
        self._renewed_at = None

    def connected(self) -> None:
        """Record that a watch is open."""
        self._error = ""
        self._observer.synced(self._resource, True)
        self._log_recovery()

    def event(self, kind: str) -> None:
        """Record an event, a bookmark or an error of a watch."""
        self._observer.received(self._resource, kind[:_MAX_TEXT])

    def received(self, objects: int) -> None:
        """Record received events."""
        self._objects = objects

    def interrupted(self) -> None:
        """Record that a watch broke off, and restarts at once."""
        self._failures += 1
        self._observer.watch_failed(self._resource, Trouble.NO_ANSWER)

    def failed(self, trouble: Trouble, text: str) -> None:
        """Record a failure after which the reflector waits."""
        self._error = f"{trouble}: {text}"[:_MAX_TEXT]
        self._failures += 1
        # A resource that was listed before is served; if its server does not find it now, that is a failure.
        self._is_absent = self._can_be_absent and trouble is Trouble.ABSENT and not self._lists
        self._observer.watch_failed(self._resource, trouble)
        if self._is_absent:
            self._observer.not_watched(self._resource)
        else:
            self._observer.synced(self._resource, False)
        self._log_failure(logging.INFO if self._is_absent or trouble in _PASSING else logging.WARNING)

    def malformed(self, text: str) -> None:
        """Record an unreadable object or line."""
        self._malformed += 1
        self._error = text[:_MAX_TEXT]
        self._observer.watch_failed(self._resource, Trouble.MALFORMED)
        if self._error not in self._unreadable and len(self._unreadable) < _MOST_LOGGED:
            self._unreadable.add(self._error)
            _LOG.warning("%s: what cannot be read is left out: %s", self._resource, self._error)

    def health(self, done: int) -> ResourceHealth:
        """Return the state; `done` is the number of changes that the scheduling thread has handled."""
        return ResourceHealth(
            resource=self._resource,
            is_synced=self._synced_at is not None and done >= self._synced_at,
            is_absent=self._is_absent,
            error=self._error,
            objects=self._objects,
            lists=self._lists,
            failures=self._failures,
            malformed=self._malformed,
            is_renewed=self._renewed_at is not None and done >= self._renewed_at,
        )

    def _log_failure(self, level: int) -> None:
        """Log a failure once: the same one may repeat for hours."""
        if self._error != self._logged:
            self._logged = self._error
            _LOG.log(level, "%s cannot be watched: %s", self._resource, self._error)

    def _log_recovery(self) -> None:
        if self._logged:
            self._logged = ""
            _LOG.info("%s: watched again", self._resource)

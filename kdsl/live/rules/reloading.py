"""Reloads changed rules and configuration while the scheduler runs: completely, or not at all.

Files are polled every few seconds, and read and compiled beside the scheduling thread, which takes over the
result between two decisions. After an error the last good set stays in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.base.threads import THREADS
from kdsl.live.rules.file_watch import FileWatch

EVERY: Final = 2.0
"""Seconds between two polls. The kubelet updates a mounted ConfigMap within about a minute."""
SETTLED_AFTER: Final = 1
"""Polls without a further change before files are read: an editor or `kubectl cp` may still be writing."""

_LOG: Final = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ReloadListener(Protocol[T_contra]):
    """Receives reloads: passes them on, counts them, records an event and a log line."""

    def applied(self, loaded: T_contra, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Receive a set that is used from the next decision on, and its warnings."""
        ...

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Receive the errors of an unusable change."""
        ...


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """The result of loading the files, and its diagnostics."""

    made: T
    diagnostics: tuple[Diagnostic, ...] = ()


class Reloader(Generic[T]):
    """Loads watched files after a change. `load` raises InvalidInputError for bad ones."""

    def __init__(self, watch: FileWatch, load: Callable[[], Loaded[T]], listener: ReloadListener[T]) -> None:
        self._watch, self._load, self._listener = watch, load, listener
        self._waits: int | None = None

    def poll(self) -> bool:
        """Poll once; load if files have changed and settled. Return whether they were loaded.

        It reads and compiles, so call it on a separate thread.
        """
        if self._watch.has_changed():
            self._waits = SETTLED_AFTER
            return False
        if self._waits is None:
            return False
        if self._waits > 1:
            self._waits -= 1
            return False
        self._waits = None
        try:
            loaded = self._load()
        except InvalidInputError as error:
            if self._has_moved():
                return False
            self._listener.refused(error.diagnostics)
        else:
            if self._has_moved():
                return False
            self._listener.applied(loaded.made, loaded.diagnostics)
        return True

    def _has_moved(self) -> bool:
        """Return whether files changed while they were read: the result may mix two versions."""
        if not self._watch.has_changed():
            return False
        self._waits = SETTLED_AFTER
        return True


async def keep_polling(poll: Callable[[], bool], every: float = EVERY) -> None:
    """Call `poll` every few seconds, on a thread beside the event loop, until cancelled.

    The process does not wait for that thread when it ends: compiling rules, or a file system, may take long.
    """
    while True:
        await asyncio.sleep(every)
        try:
            await asyncio.wrap_future(THREADS.begin(poll))
        except Exception:  # noqa: BLE001 - no file may end a running scheduler
            _LOG.exception("changed rules or configuration cannot be looked at: the last good ones stay")

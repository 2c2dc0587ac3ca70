"""Takes over changed rules and configuration while the scheduler runs: all of it, or nothing.

Files are looked at every few seconds, and read and compiled beside the scheduling thread; what came of it is
handed over between two decisions. Where something is wrong the last good set goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX
from kdsl.live.file_watch import FileWatch

EVERY: Final = 2.0
"""Seconds between two looks. The kubelet updates a mounted ConfigMap within about a minute."""
SETTLED_AFTER: Final = 1
"""Looks without a further change before files are read: an editor or `kubectl cp` may be writing still."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ReloadListener(Protocol[T_contra]):
    """Hears of reloads: hands them over, counts them, writes an event and a log line."""

    def applied(self, loaded: T_contra, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Hear of a set that is to run from the next decision on, and of warnings about it."""
        ...

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Hear of a change that cannot be used, and why."""
        ...


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """What was made of the files, and what was found on the way."""

    made: T
    diagnostics: tuple[Diagnostic, ...] = ()


class Reloader(Generic[T]):
    """Watches files and loads them when they have changed. `load` raises InvalidInputError for bad ones."""

    def __init__(
        self,
        paths: Callable[[], Iterable[Path]],
        load: Callable[[], Loaded[T]],
        listener: ReloadListener[T],
    ) -> None:
        self._watch = FileWatch(paths, lambda name: name.endswith((SUFFIX, TWIN_SUFFIX)))
        self._load, self._listener = load, listener
        self._waits: int | None = None

    def look(self) -> bool:
        """Look once; load where files have changed and have settled. Tell whether that was done.

        It reads and compiles, so it belongs on a thread of its own.
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
        """Tell whether files changed while they were read: what came of it may be of two versions."""
        if not self._watch.has_changed():
            return False
        self._waits = SETTLED_AFTER
        return True


async def keep_looking(look: Callable[[], bool], every: float = EVERY) -> None:
    """Look every few seconds, on a thread beside the event loop, until cancelled."""
    while True:
        await asyncio.sleep(every)
        await asyncio.to_thread(look)

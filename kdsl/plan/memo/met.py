"""Which kinds of pods were met before: one that comes again may come yet again, and is worth keeping."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Final

MAX_MET: Final = 65536
"""The most kinds that are known to have been met; beyond that they are met anew."""


class Met:
    """The kinds that were met, by signature. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[Hashable] = set()
        self._lock = Lock()

    def meet(self, signature: Hashable) -> bool:
        """Tell whether a kind was met before, and remember it."""
        if signature in self._known:
            return True
        with self._lock:
            if len(self._known) >= MAX_MET:
                self._known.clear()
            self._known.add(signature)
        return False

    def clear(self) -> None:
        """Forget all kinds."""
        with self._lock:
            self._known.clear()

"""The signatures that were seen before: answers are kept for repeated signatures only."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Final

MAX_SEEN: Final = 65536
"""The most signatures that are remembered; beyond that the set starts over."""


class SeenSignatures:
    """A set of signatures. Thread-safe."""

    def __init__(self) -> None:
        self._known: set[Hashable] = set()
        self._lock = Lock()

    def add(self, signature: Hashable) -> bool:
        """Add a signature. Return whether it was there."""
        if signature in self._known:
            return True
        with self._lock:
            if len(self._known) >= MAX_SEEN:
                self._known.clear()
            self._known.add(signature)
        return False

    def clear(self) -> None:
        """Remove all signatures."""
        with self._lock:
            self._known.clear()

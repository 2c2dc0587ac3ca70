"""The signatures that were seen before: answers are kept for repeated signatures only."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MAX_SEEN: Final = 65536
"""The most signatures that are remembered; beyond that the set starts over."""


class SeenSignatures:
    """A set of signatures. Thread-safe, as each operation on the set is atomic."""

    def __init__(self) -> None:
        self._known: set[Hashable] = set()

    def add(self, signature: Hashable) -> bool:
        """Add a signature. Return whether it was there."""
        known = self._known
        if signature in known:
            return True
        if len(known) >= MAX_SEEN:
            known.clear()
        known.add(signature)
        return False

    def clear(self) -> None:
        """Remove all signatures."""
        self._known.clear()

"""How far searches went: pods that the same filters look at are rejected by about as many nodes.

A run that holds all nodes a search needs costs less than several. How long runs are changes nothing but time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MAX_KINDS: Final = 1024
"""The most kinds of searches that are known; beyond that it starts anew."""


class Reaches:
    """How many nodes the last two searches of each kind visited."""

    def __init__(self) -> None:
        self._latest: dict[Hashable, tuple[int, int]] = {}

    def of(self, kind: Hashable) -> int:
        """Return how many nodes a search will visit, at a guess: 0 where nothing is known."""
        # The one that went farther may have been for an odd pod.
        return min(self._latest.get(kind, (0,)))

    def note(self, kind: Hashable, visited: int) -> None:
        """Take in how many nodes a search has visited."""
        if len(self._latest) >= MAX_KINDS:
            self._latest.clear()
        self._latest[kind] = (self._latest.get(kind, (0,))[-1], visited)

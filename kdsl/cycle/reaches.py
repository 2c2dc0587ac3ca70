"""How far searches went: pods that the same filters look at are rejected by about as many nodes.

A run that holds all nodes a search needs costs less than several. How long runs are changes nothing but time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MAX_KINDS: Final = 1024
"""The most kinds of searches that are known; beyond that it starts anew."""


class Reach:
    """How many nodes the last two searches of a kind visited."""

    __slots__ = ("_before", "_latest")

    def __init__(self) -> None:
        self._latest = self._before = 0

    @property
    def expected(self) -> int:
        """How many nodes the next one will visit, at a guess: 0 where too little is known."""
        # The one that went farther may have been for an odd pod.
        return min(self._latest, self._before)

    def note(self, visited: int) -> None:
        """Take in how many nodes a search has visited."""
        self._latest, self._before = visited, self._latest


class Reaches:
    """What is known by kind of search."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Reach] = {}

    def of(self, kind: Hashable) -> Reach:
        """Return what is known of a kind."""
        found = self._known.get(kind)
        if found is None:
            if len(self._known) >= MAX_KINDS:
                self._known.clear()
            found = self._known[kind] = Reach()
        return found

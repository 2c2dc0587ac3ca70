"""The lengths of earlier searches: pods with equal inputs of the filters visit about as many nodes.

One run over all nodes that a search needs costs less than several. The length of runs changes only the time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MAX_KINDS: Final = 1024
"""The largest number of kinds of searches; beyond it all are forgotten."""


class Reach:
    """The numbers of nodes that the last two searches of a kind visited."""

    __slots__ = ("_before", "_latest")

    def __init__(self) -> None:
        self._latest = self._before = 0

    @property
    def expected(self) -> int:
        """Return an estimate for the next search: 0 where too little is known."""
        # The longer search may have been for an unusual pod.
        return min(self._latest, self._before)

    def note(self, visited: int) -> None:
        """Record the number of nodes that a search has visited."""
        self._latest, self._before = visited, self._latest


class Reaches:
    """The lengths of searches by kind."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Reach] = {}

    def of(self, kind: Hashable) -> Reach:
        """Return the record of a kind."""
        found = self._known.get(kind)
        if found is None:
            if len(self._known) >= MAX_KINDS:
                self._known.clear()
            found = self._known[kind] = Reach()
        return found

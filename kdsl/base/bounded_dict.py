"""A dictionary that is bounded in the simplest way, for values that can be made again."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """At most `most` items, as long as they come by `keep`: a full dictionary starts over.

    Each operation is atomic, so threads that put equal values need no lock.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value

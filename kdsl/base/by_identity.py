"""Values made once for each of some immutable objects, as long as it is the same object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kdsl.base.bounded_dict import BoundedDict

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """The values of at most `most` objects; then all are forgotten. For objects that are dear to compare."""

    def __init__(self, make: Callable[[K], V], most: int) -> None:
        self._make = make
        self._made = BoundedDict[int, tuple[K, V]](most)

    def of(self, key: K) -> V:
        """Return the value of an object."""
        known = self._made.get(id(key))
        if known is None or known[0] is not key:
            known = self._keep(key)
        return known[1]

    def _keep(self, key: K) -> tuple[K, V]:
        return self._made.keep(id(key), (key, self._make(key)))


class ByTuple(ByIdentity[tuple[K, ...], V]):
    """The values of tuples with at most `most` items in all."""

    def __init__(self, make: Callable[[tuple[K, ...]], V], most: int) -> None:
        super().__init__(make, most)
        self._most, self._items = most, 0

    def _keep(self, key: tuple[K, ...]) -> tuple[tuple[K, ...], V]:
        self._items += len(key)
        if self._items > self._most:
            self._made.clear()
            self._items = len(key)
        return super()._keep(key)

"""An immutable, hashable map, for labels and similar fields of immutable values and signatures."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, overload

MAX_SHARED: Final = 1024
"""The largest number of maps that are kept to be shared."""

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class FrozenMap(Mapping[K, V]):
    """An immutable, hashable mapping; it keeps the order of its source.

    Values must be hashable for its hash. `entries` is its content as a plain mapping, for code that reads one
    key of many maps. `derived` belongs to `SelectedKeys`, which keeps there its findings about the content.
    """

    __slots__ = ("_hash", "_ordered", "derived", "entries")

    entries: Mapping[K, V]
    derived: Any
    _hash: int | None
    _ordered: tuple[tuple[K, V], ...] | None

    def __init__(self, items: Mapping[K, V] = {}) -> None:
        self.entries = dict(items)
        self.derived = self._hash = self._ordered = None

    @property
    def ordered(self) -> tuple[tuple[K, V], ...]:
        """The content with its order, for keys: two equal maps may have different orders."""
        if self._ordered is None:
            self._ordered = tuple(self.entries.items())
        return self._ordered

    def __getitem__(self, key: K) -> V:
        return self.entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[K]:
        return iter(self.entries)

    # The hot path: Mapping's own versions run in Python for every item.

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        return self.entries.get(key, default)

    def items(self) -> ItemsView[K, V]:
        return self.entries.items()

    def __len__(self) -> int:
        return len(self.entries)

    def __reduce__(self) -> tuple[type[FrozenMap[K, V]], tuple[Mapping[K, V]]]:
        # Without the hash: texts have other hashes in another process.
        return FrozenMap, (self.entries,)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self.entries == other.entries
        return self.entries == other if isinstance(other, dict) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.entries.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"FrozenMap({self.entries!r})"


NO_STRINGS: Final[FrozenMap[str, str]] = FrozenMap()


def freeze(strings: Mapping[str, str]) -> FrozenMap[str, str]:
    """Return `strings` as a FrozenMap; the many empty ones are one object."""
    return FrozenMap(strings) if strings else NO_STRINGS


def share(strings: Mapping[str, str]) -> FrozenMap[str, str]:
    """Return `strings` as a FrozenMap that is shared by all equal maps with the same order: the labels of
    pods of one template take memory once, and comparing them takes no time.
    """
    return _shared(tuple(strings.items())) if strings else NO_STRINGS


@lru_cache(maxsize=MAX_SHARED)
def _shared(items: tuple[tuple[str, str], ...]) -> FrozenMap[str, str]:
    return FrozenMap(dict(items))

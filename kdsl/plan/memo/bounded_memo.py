"""A memo by signature, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar


class MemoEntry(Protocol):
    """The value of one signature in a memo."""

    @property
    def nbytes(self) -> int: ...


E = TypeVar("E", bound=MemoEntry)

MAX_BYTES: Final = 32 << 20
"""The most bytes of a memo; a profile has one for its predicates and one for its scores. The least recently
used signatures go first. `MIN_SIGNATURES` are kept in any case.
"""
MIN_SIGNATURES: Final = 4
_OVERHEAD: Final = 4096
"""The approximate bytes of an entry without its columns."""
_MAX_USED: Final = 32
"""The most entries whose growth is not counted yet."""


class Memo(Generic[E]):
    """Entries by signature, the most recently used ones, of at most `most` bytes together."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, E] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0
        # The entries that may have grown since their bytes were counted.
        self._used: set[Hashable] = set()
        self._latest: tuple[Hashable, E | None] = (None, None)
        self._lock = Lock()

    def get(self, signature: Hashable, is_valid: Callable[[E], bool], make: Callable[[], E]) -> E:
        """Return the entry of a signature, made again if it is not valid."""
        entry = self.find(signature)
        return entry if entry is not None and is_valid(entry) else self.put(signature, make())

    def find(self, signature: Hashable) -> E | None:
        """Return the entry of a signature; None if there is none."""
        latest, entry = self._latest
        if latest == signature:
            return entry
        with self._lock:
            entry = self._entries.get(signature)
            if entry is not None:
                self._entries.move_to_end(signature)
                if len(self._used) >= _MAX_USED:
                    self._book()
                self._used.add(signature)
            self._latest = (signature, entry)
            return entry

    def put(self, signature: Hashable, entry: E) -> E:
        """Keep the entry of a signature, and return it."""
        with self._lock:
            self._entries[signature] = entry
            self._entries.move_to_end(signature)
            self._used.add(signature)
            self._book()
            # It grows from now on.
            self._used.add(signature)
            self._latest = (signature, entry)
        return entry

    def _book(self) -> None:
        """Count the bytes of the entries in use, and drop the entries that are too much."""
        for signature in self._used & self._entries.keys():
            size = self._entries[signature].nbytes + _OVERHEAD
            self._bytes += size - self._sizes.get(signature, 0)
            self._sizes[signature] = size
        self._used.clear()
        while self._bytes > self._most and len(self._entries) > MIN_SIGNATURES:
            oldest, _ = self._entries.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self._used.clear()
            self._bytes = 0
            self._latest = (None, None)

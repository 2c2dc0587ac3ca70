"""A memo by signature, or by another key, bounded in bytes."""

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
        # The entries that were used since their bytes were counted, in this order: they may have grown.
        self._used: dict[Hashable, None] = {}
        # Pods of one signature often come one after the other, and comparing is faster than hashing.
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
        # Without a lock: each operation is atomic. Another thread may put or clear in between, but whoever
        # finds an entry asks whether it is valid.
        entry = self._entries.get(signature)
        if entry is not None:
            if len(self._used) >= _MAX_USED and signature not in self._used:
                with self._lock:
                    self._book()
            # It becomes the last one, and may grow from now on.
            self._used.pop(signature, None)
            self._used[signature] = None
        self._latest = (signature, entry)
        return entry

    def put(self, signature: Hashable, entry: E) -> E:
        """Keep the entry of a signature, and return it."""
        with self._lock:
            self._entries[signature] = entry
            self._used[signature] = None
            self._book()
            # It grows from now on.
            self._used[signature] = None
            self._latest = (signature, entry)
        return entry

    def _book(self) -> None:
        """Count the bytes of the entries in use, and drop the least recently used ones that are too much."""
        used, self._used = self._used, {}
        entries, sizes = self._entries, self._sizes
        # Another thread may still add to the old ones.
        for signature in tuple(used):
            entry = entries.get(signature)
            if entry is not None:
                entries.move_to_end(signature)
                size = entry.nbytes + _OVERHEAD
                self._bytes += size - sizes.get(signature, 0)
                sizes[signature] = size
        while self._bytes > self._most and len(entries) > MIN_SIGNATURES:
            oldest, _ = entries.popitem(last=False)
            self._bytes -= sizes.pop(oldest, 0)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self._used.clear()
            self._bytes = 0
            self._latest = (None, None)

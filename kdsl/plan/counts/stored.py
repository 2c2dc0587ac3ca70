"""The tallies of a store, and their keys."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct


class TallyKey(Struct, frozen=True, cache_hash=True):
    """The key of a tally. Keys are large, so the hash is computed once."""

    value: Hashable


class StoredTally:
    """The base of tallies.

    `nbytes` is the approximate size, `booked` the size that the store has counted (0 outside a store), `used`
    the number of its last use, and `version` the last version of the live snapshot for which it was valid.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.booked = 0
        self.used = 0
        self.version = -1

"""The tallies of a store, their keys, and handles that find them again without a look-up."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import ref


class TallyKey:
    """The key of a tally. Keys are large, so the hash is computed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        self._value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TallyKey) and self._value == other._value


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


TallyT = TypeVar("TallyT", bound=StoredTally)


class Handle(Generic[TallyT]):
    """A repeated request for one tally. Requests for the same counts have one `key`; without a key the tally
    is not stored.

    The reference to the tally is weak: the store decides which tallies are kept.
    """

    __slots__ = ("key", "tally")

    def __init__(self, key: TallyKey | None) -> None:
        self.key = key
        self.tally: Callable[[], TallyT | None] = _nothing
        """Returns the tally that answered the last time; None if it is not kept any more."""

    def remember(self, tally: TallyT) -> None:
        """Remember the tally that answered."""
        self.tally = ref(tally)


def _nothing() -> None:
    return None

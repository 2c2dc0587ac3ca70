"""What a store keeps, the names it has there, and how those who ask again find it without its name."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import ref


class Name:
    """What is counted, as a key: names are large, so the hash is computed once."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Hashable) -> None:
        self._value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self._value == other._value


class Kept:
    """The base of tallies.

    `nbytes` is about what the tally takes, `booked` what its store counts for it: 0 where it is in none.
    `version` is that of the live snapshot for which it was last good to read.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.booked = 0
        self.version = -1


KeptT = TypeVar("KeptT", bound=Kept)


class Handle(Generic[KeptT]):
    """One who asks a store again and again. `name` is the same for all who ask the same; without one nothing
    is kept.

    The tally is held weakly: it is for the store to say what is kept.
    """

    __slots__ = ("name", "tally")

    def __init__(self, name: Name | None) -> None:
        self.name = name
        self.tally: Callable[[], KeptT | None] = _nothing
        """Returns the tally that answered the last time; None where it is not kept any more."""

    def note(self, tally: KeptT) -> None:
        """Note that a tally answers."""
        self.tally = ref(tally)


def _nothing() -> None:
    return None

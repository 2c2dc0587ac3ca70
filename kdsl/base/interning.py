"""One object for equal values: comparing them takes no time, and they take memory once.

Readers of frequently repeated values use it: amounts, affinity terms, spread constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

MAX_SHARED: Final = 4096
"""The largest number of values of one kind that are kept."""

T = TypeVar("T")


def interning(kind: type[T]) -> Callable[[T], T]:
    """Return a function that replaces a value of a hashable kind by an equal earlier one, if there is one."""

    @lru_cache(MAX_SHARED)
    def share(value: T) -> T:
        return value

    return share

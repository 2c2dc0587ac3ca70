"""One object for equal values: comparing it takes no time, and it takes its memory once.

Whoever reads values that come again and again shares them: amounts, affinity terms, spread constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

MAX_SHARED: Final = 4096
"""So many values of one kind are remembered to be shared."""

T = TypeVar("T")


def sharing(kind: type[T]) -> Callable[[T], T]:
    """Return what returns a value of a kind, which must be hashable, or an equal one that was here before."""

    @lru_cache(MAX_SHARED)
    def share(value: T) -> T:
        return value

    return share

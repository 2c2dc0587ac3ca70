"""Counts of things that come and go."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

K = TypeVar("K")


def change_count(counts: Counter[K], key: K, by: int) -> None:
    """Add to the count of one key, which goes when nothing is left. Unlike `-=` it reads no other count."""
    counts[key] += by
    if not counts[key]:
        del counts[key]

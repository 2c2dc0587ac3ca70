"""Sets of characters as sorted ranges of code points: what one place of a pattern matches."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges, sorted, neither overlapping nor touching."""

LAST = sys.maxunicode
ANY: Ranges = ((0, LAST),)

_CASED = 0x1E944  # no character from here on has a case


def of(*pairs: str) -> Ranges:
    """Return the set of characters in ranges written as pairs: `of("az", "__")`."""
    return union((ord(pair[0]), ord(pair[1])) for pair in pairs)


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return any ranges in sorted and joined form."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def negate(ranges: Ranges) -> Ranges:
    """Return every character that is not in the set."""
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            result.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


def contains(ranges: Ranges, code: int) -> bool:
    """Tell whether the character is in the set; by halving, as classes of Unicode have hundreds of ranges."""
    low, high = 0, len(ranges)
    while low < high:
        middle = (low + high) // 2
        if code > ranges[middle][1]:
            low = middle + 1
        else:
            high = middle
    return low < len(ranges) and ranges[low][0] <= code


@cache
def category(name: str) -> Ranges:
    """Return the characters of a Unicode general category, such as `L` or `Lu`; KeyError for no category."""
    found = _categories()
    return union(
        pair for key, ranges in found.items() if key.startswith(name) for pair in ranges
    ) or _no_such(name)


def _no_such(name: str) -> Ranges:
    raise KeyError(name)


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for code in range(LAST + 1):
        ranges = found.setdefault(unicodedata.category(chr(code)), [])
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    # RE2 knows the categories of assigned characters and surrogates, not `Cn`.
    found.pop("Cn", None)
    return found


def fold(ranges: Ranges) -> Ranges:
    """Return the set with every character that differs from one of it in case only."""
    extra = [
        (other, other)
        for orbit in _orbits()
        if any(contains(ranges, code) for code in orbit)
        for other in orbit
    ]
    return union([*ranges, *extra])


@cache
def _orbits() -> tuple[tuple[int, ...], ...]:
    """Return the groups of characters that Unicode's simple case folding takes for the same."""
    groups: dict[str, list[int]] = {}
    for code in range(_CASED):
        key = _simple_fold(chr(code))
        groups.setdefault(key, []).append(code)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _simple_fold(char: str) -> str:
    if char == "\u0131":  # the dotless i folds to itself, though its upper case is I
        return char
    upper = char.upper()
    lower = (upper if len(upper) == 1 else char).lower()
    return lower if len(lower) == 1 else char

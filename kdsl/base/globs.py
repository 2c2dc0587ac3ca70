"""Patterns of file names: the `files` of a team, the lines of a `.kdslignore`."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_WILDCARD: Final = re.compile(r"((?:^|(?<=/))\*\*/|\*\*|\*)")
_EXPRESSIONS: Final = {"**/": "(?:.*?/)??", "**": ".*?", "*": "[^/]*?"}


@cache
def glob(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern, for `fullmatch`.

    `*` and `?` stay within a folder, `**` goes through folders; `**/` in place of a folder is any number of
    them.
    """
    first, *rest = _WILDCARD.split(pattern)
    stretches = [[_literal(first)]]
    for wildcard, text in zip(rest[::2], rest[1::2], strict=True):
        part = _EXPRESSIONS[wildcard] + _literal(text)
        if wildcard == "*":
            stretches[-1].append(part)
        else:
            stretches.append([part])
    # No place is tried again once a later wildcard is reached: else each wildcard would multiply the time.
    # The first place will do, as the wildcard behind it takes in what comes before another one. Only behind
    # the last wildcard that goes through folders comes the end of the name.
    *before, last = (_stretch(parts) for parts in stretches)
    return re.compile("".join(f"(?>{each[0]}{each[1]})" for each in before) + "".join(last), re.DOTALL)


def _stretch(parts: list[str]) -> tuple[str, str]:
    """Return the expression of what stands between two wildcards that go through folders: all but its last
    part, and that.
    """
    *fixed, last = parts
    # Where it begins is open: that is tried from left to right.
    return "".join([*fixed[:1], *(f"(?>{each})" for each in fixed[1:])]), last


def _literal(text: str) -> str:
    return "[^/]".join(map(re.escape, text.split("?")))

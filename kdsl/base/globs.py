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
    # INVARIANT: no position is tried again once a later wildcard matches, or every wildcard would multiply
    # the time. The first match of a part is enough, since the wildcard behind it takes up the rest. Only the
    # part behind the last folder wildcard must reach the end of the name.
    *before, last = (_stretch(parts) for parts in stretches)
    return re.compile("".join(f"(?>{each[0]}{each[1]})" for each in before) + "".join(last), re.DOTALL)


def _stretch(parts: list[str]) -> tuple[str, str]:
    """Return the expression of the part between two folder wildcards: all but its last segment, and the last
    segment.
    """
    *fixed, last = parts
    # The start of this part is open, so it is searched from left to right.
    return "".join([*fixed[:1], *(f"(?>{each})" for each in fixed[1:])]), last


def _literal(text: str) -> str:
    return "[^/]".join(map(re.escape, text.split("?")))

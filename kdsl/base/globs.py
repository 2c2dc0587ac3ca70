"""Patterns of file names: the `files` of a team, the lines of a `.kdslignore`."""

from __future__ import annotations

import re
from functools import cache


@cache
def glob(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern: `*` and `?` stay within a folder, `**` goes through them."""
    parts = []
    for part in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern):
        parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part) or re.escape(part))
    return re.compile("".join(parts), re.DOTALL)

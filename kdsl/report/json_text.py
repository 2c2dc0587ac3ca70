"""Documents as JSON that is safe to look at: what a terminal would obey is written as `\\u…`, which is the
same value.
"""

from __future__ import annotations

import json


def json_text(document: object) -> str:
    """Write a document. JSON has such characters inside of strings alone."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escaped, line)) for line in lines)


def _escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]

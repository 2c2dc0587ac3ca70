"""Documents as JSON that is safe to print: control characters become `\\u…`, which has the same value."""

from __future__ import annotations

import json


def json_text(document: object) -> str:
    """Return a document as JSON text. Control characters occur in its strings only."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escaped, line)) for line in lines)


def _escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]

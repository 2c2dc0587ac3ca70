"""Where the first wrong character of an input is."""

from __future__ import annotations


def forbidden_at(text: str, error: Exception) -> int:
    """Return the place of the character for which a YAML reader refuses a text; 0 if the error is about none.

    libyaml's own place counts bytes.
    """
    character = getattr(error, "character", "")
    return max(text.find(chr(character) if isinstance(character, int) else character), 0)

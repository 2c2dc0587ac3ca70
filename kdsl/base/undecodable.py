"""Inputs that are not text, or not allowed as YAML: where the first wrong character is."""

from __future__ import annotations

from kdsl.base.diagnostic import Diagnostic


def undecodable(code: str, where: object, error: UnicodeDecodeError) -> Diagnostic:
    """Return the finding about a file that is not UTF-8 text; it names the byte and its line."""
    data = bytes(error.object)
    line = data.count(b"\n", 0, error.start) + 1
    note = f"byte 0x{data[error.start]:02x} in line {line} starts no character"
    title = f"`{where}` is not UTF-8 text"
    return Diagnostic(code, title, where=str(where), notes=(note,), help=("save the file as UTF-8",))


def forbidden_at(text: str, error: Exception) -> int:
    """Return the place of the character for which a YAML reader refuses a text; 0 if the error is about none.

    libyaml's own place counts bytes.
    """
    character = getattr(error, "character", "")
    return max(text.find(chr(character) if isinstance(character, int) else character), 0)

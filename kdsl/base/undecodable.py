"""Inputs that are not text or not JSON: where the first wrong character is."""

from __future__ import annotations

import re
from typing import Final

from kdsl.base.diagnostic import Diagnostic

_LONE_SURROGATE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*"
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_PATH: Final = re.compile(r" - at `.*`$")


def undecodable(code: str, where: object, error: UnicodeDecodeError) -> Diagnostic:
    """Return the finding about a file that is not UTF-8 text; it names the byte and its line."""
    data = bytes(error.object)
    line = data.count(b"\n", 0, error.start) + 1
    note = f"byte 0x{data[error.start]:02x} in line {line} starts no character"
    title = f"`{where}` is not UTF-8 text"
    return Diagnostic(code, title, where=str(where), notes=(note,), help=("save the file as UTF-8",))


def json_mistake(data: bytes, error: Exception) -> str:
    """Return why data is not JSON, in words for users, of the error of a decoder."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if not data.strip():
        return "it is empty"
    text = _PATH.sub("", str(error).removeprefix("JSON is malformed: "))
    if "surrogate" in text or "truncated" in text:
        # A decoder takes a text that ends behind the first half of a surrogate pair for a cut off one.
        found = _LONE_SURROGATE.search(data)
        if found is not None:
            line = data.count(b"\n", 0, found.start(1)) + 1
            return f"`{found[1].decode()}` in line {line} is half of a character, without its other half"
    if "truncated" in text:
        return "it ends within a value"
    return text[:1].lower() + text[1:]

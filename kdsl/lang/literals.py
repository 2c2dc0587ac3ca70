"""Values of CEL literals from their spelling, and back. The tree builder and the printer use it.

Source of the rules: the lexis of the CEL language definition
(https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax) and the ANTLR grammar of cel-go.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from kdsl.lang.expression_tree import LiteralKind

INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
MAX_DIGITS = 400
"""The longest number that is read: Python's own conversion is quadratic and has its own limit."""

_PREFIX = re.compile(r"([bBrR]{0,2})(\"\"\"|'''|\"|')")
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
_INCOMPLETE = dict.fromkeys("xX", "needs two hexadecimal digits") | dict.fromkeys(
    "01234567", "starts no octal escape, which has three digits up to `\\377`"
)
_INCOMPLETE |= {"u": "needs four hexadecimal digits", "U": "needs eight hexadecimal digits"}
_SIMPLE = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))
_SPELLED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"} | {
    '"': '\\"',
    "\\": "\\\\",
}


@dataclass(frozen=True, slots=True)
class BadEscape:
    """An invalid escape sequence: offsets into the literal, and the error."""

    start: int
    end: int
    problem: str


@dataclass(frozen=True, slots=True)
class DecodedString:
    """A string's value. `offsets[i]` is the place of character `i` in the literal; one more offset marks the
    end.
    """

    text: str
    offsets: tuple[int, ...]
    problems: tuple[BadEscape, ...]


@dataclass(frozen=True, slots=True)
class DecodedBytes:
    value: bytes
    problems: tuple[BadEscape, ...]


def decode_string(raw: str) -> DecodedString:
    """Decode a string literal, quotes and prefix included. An invalid escape becomes U+FFFD."""
    characters: list[str] = []
    offsets: list[int] = []
    problems: list[BadEscape] = []
    is_raw, at, end = _body(raw)
    while at < end:
        offsets.append(at)
        if raw[at] == "\\" and not is_raw:
            match = _ESCAPE.match(raw, at, end)
            code = _code_point(match) if match else None
            after = match.end() if match else min(at + 2, end)
            if code is None:
                problems.append(_bad_escape(raw, at, after, match))
            characters.append("\ufffd" if code is None else chr(code))
            at = after
        else:
            if "\ud800" <= raw[at] <= "\udfff":
                problems.append(BadEscape(at, at + 1, "a surrogate is not a character"))
            characters.append(raw[at])
            at += 1
    return DecodedString("".join(characters), (*offsets, end), tuple(problems))


def decode_bytes(raw: str) -> DecodedBytes:
    """Read a bytes literal: plain characters are UTF-8, `\\x` and octal escapes are single bytes."""
    value = bytearray()
    problems: list[BadEscape] = []
    is_raw, at, end = _body(raw)
    while at < end:
        match = _ESCAPE.match(raw, at, end) if raw[at] == "\\" and not is_raw else None
        if match and not (match["short"] or match["long"]):
            value.append(_code_point(match) or 0)
            at = match.end()
        elif raw[at] == "\\" and not is_raw:
            after = match.end() if match else min(at + 2, end)
            problems.append(_bad_escape(raw, at, after, match))
            at = after
        else:
            if "\ud800" <= raw[at] <= "\udfff":
                problems.append(BadEscape(at, at + 1, "a surrogate is not a character"))
            value += raw[at].encode("utf-8", "replace")
            at += 1
    return DecodedBytes(bytes(value), tuple(problems))


def read_integer(raw: str) -> int | None:
    """Read decimal or `0x` digits, without sign and suffix; None beyond `MAX_DIGITS`."""
    if len(raw) > MAX_DIGITS:
        return None
    return int(raw, 16) if raw.startswith("0x") else int(raw)


def read_double(raw: str) -> float | None:
    """Read a floating-point literal; None where it is beyond the largest double."""
    value = float(raw)
    return value if math.isfinite(value) else None


def spell(kind: LiteralKind, value: bool | int | float | str | bytes | None) -> str:
    """Return a value as a literal that reads back as the same kind and value."""
    match kind, value:
        case LiteralKind.NULL, _:
            return "null"
        case LiteralKind.BOOL, _:
            return "true" if value else "false"
        case LiteralKind.STRING, str():
            return f'"{"".join(_spell_character(character) for character in value)}"'
        case LiteralKind.BYTES, bytes():
            return f'b"{"".join(_spell_byte(byte) for byte in value)}"'
        case LiteralKind.UINT, int():
            return f"{value}u"
        case LiteralKind.INT | LiteralKind.DOUBLE, int() | float():
            return repr(value)
        case _:
            raise ValueError(f"{value!r} is no value of kind {kind}")


def _body(raw: str) -> tuple[bool, int, int]:
    """Return whether the literal is raw, and the start and end of its content."""
    match = _PREFIX.match(raw)
    assert match is not None, raw
    return "r" in match[1].lower(), match.end(), len(raw) - len(match[2])


def _code_point(match: re.Match[str]) -> int | None:
    """Return the code point of an escape; None for a surrogate or a number beyond Unicode."""
    if match["simple"]:
        return ord(_SIMPLE[match["simple"]])
    if match["octal"]:
        return int(match["octal"], 8)
    code = int(match["hex"] or match["short"] or match["long"], 16)
    return code if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _bad_escape(raw: str, start: int, end: int, match: re.Match[str] | None) -> BadEscape:
    written = raw[start:end]
    if match is None:
        return BadEscape(
            start, end, f"`{written}` {_INCOMPLETE.get(written[1:], 'is not an escape sequence')}"
        )
    if _code_point(match) is None:
        return BadEscape(start, end, f"`{written}` is a surrogate or beyond Unicode")
    return BadEscape(start, end, f"`{written}` has no place in bytes: write the UTF-8 bytes with `\\x`")


def _spell_character(character: str) -> str:
    if character in _SPELLED:
        return _SPELLED[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _spell_byte(byte: int) -> str:
    character = chr(byte)
    return _SPELLED.get(character) or (character if 0x20 <= byte < 0x7F else f"\\x{byte:02x}")

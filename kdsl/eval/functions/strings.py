"""Strings. Offsets count code points, as Python's do; results are bounded by `MAX_TEXT`."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping

from kdsl.eval.functions.formatting import format_text
from kdsl.eval.values import MAX_TEXT, EvalError, Value, checked_list, checked_text

_WORD = 2**64 - 1
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_ESCAPES = str.maketrans(
    dict(zip('\a\b\f\n\r\t\v\\"', (f"\\{letter}" for letter in 'abfnrtv\\"'), strict=True))
)
# Unicode's White_Space property. `str.strip` alone would also take the separators U+001C to U+001F.
_WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def quote(text: str) -> str:
    """Return the text in double quotes with CEL's escapes; characters that print stay as they are."""
    return checked_text(f'"{text.translate(_ESCAPES)}"')


def _offset(offset: int, end: int) -> int:
    if not 0 <= offset <= end:
        raise EvalError(f"index out of range: {offset}")
    return offset


def char_at(text: str, offset: int) -> str:
    at = _offset(offset, len(text))
    return text[at : at + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    return text.find(part, _offset(start, len(text)))


def last_index_of(text: str, part: str, last: int | None = None) -> int:
    """Return the last place of `part` at or before `last`."""
    if last is None:
        return text.rfind(part)
    return text.rfind(part, 0, _offset(last, len(text)) + len(part))


def substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else _offset(end, len(text))
    at = _offset(start, len(text))
    if at > stop:
        raise EvalError(f"invalid substring range: start {at}, end {stop}")
    return text[at:stop]


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """Replace the first `count` occurrences, all if it is negative."""
    found = text.count(old) if count < 0 else min(text.count(old), count)
    if len(text) + found * (len(new) - len(old)) > MAX_TEXT:
        raise EvalError(f"a text would be longer than {MAX_TEXT} characters")
    return text.replace(old, new, -1 if count < 0 else count)


def split(text: str, separator: str, count: int = -1) -> tuple[str, ...]:
    """Return at most `count` parts, all if it is negative; an empty separator splits into characters."""
    if count == 0:
        return ()
    if separator:
        parts = text.split(separator, count - 1 if count > 0 else -1)
    elif count < 0 or count >= len(text):
        parts = list(text)
    else:
        parts = [*text[: count - 1], text[count - 1 :]]
    return checked_list(parts, len(parts))


def join(parts: Value, separator: str = "") -> str:
    if any(part.__class__ is not str for part in parts):
        raise EvalError("no such overload: join")
    size = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
    if size > MAX_TEXT:
        raise EvalError(f"a text would be longer than {MAX_TEXT} characters")
    return checked_text(separator.join(parts))


def hashed(text: str) -> int:
    """Return 63 bits of a string: FNV-1a over its UTF-8, with the finalizer of MurmurHash3 for the low
    bits.
    """
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 & _WORD
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        found = (found ^ found >> 33) * factor & _WORD
    return (found ^ found >> 33) >> 1


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "hash": hashed,
    "contains": lambda text, part: part in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "charAt": char_at,
    "lowerAscii": lambda text: text.translate(_LOWER),
    "upperAscii": lambda text: text.translate(_UPPER),
    "replace": replace,
    "split": split,
    "substring": substring,
    "trim": lambda text: text.strip(_WHITE),
    "string_reverse": lambda text: text[::-1],
    "format": format_text,
    "strings.quote": quote,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "join": join,
}

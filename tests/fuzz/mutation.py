"""Mutations of texts that are nearly right: by byte, by token, and by splicing two of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_TOKEN = re.compile(r"\s+|\w+|\"(?:[^\"\\\n]|\\.)*\"|[^\w\s]")
_ODD = (
    *("\x00", "\ufeff", "\u2028", "\r", "\t", "é", "𝕏", "\\", '"', "'", "`", "${", "}", "(", "[", "{", "0x", "1e999"),
    *("-9223372036854775808", "18446744073709551616u", "0.0 / 0.0", "///", "//", "/*", "r'", '"""', "b'\\xff'", "…"),
    *("&anchor", "*anchor", "<<:", "!!python/object:x", "---", "...", "? ", "- - - ", "yes", "~", ": :", "|-", ">+"),
    *("(" * 300, "[" * 300, "!" * 300, "a." * 300, "x, " * 50, " && true" * 100, "0" * 5000, "- " * 200, "{a: " * 150),
    *("node", "pod", "cluster", "topology('zone')", "dyn", "null", "optional.none()", "has(", ".all(x, x)", ".map(x, x)"),
)  # fmt: skip
"""What parsers trip over."""


def mutated(random: Random, text: str, others: Sequence[str]) -> bytes:
    """Return the text with one to four mutations."""
    data = text
    for _ in range(random.randint(1, 4)):
        data = random.choice((_tokens, _tokens, _characters, _splice, _lines))(random, data, others)
    raw = data.encode("utf-8", "surrogatepass")
    return _bytes(random, raw) if random.random() < 0.1 else raw


def _tokens(random: Random, text: str, others: Sequence[str]) -> str:
    tokens = _TOKEN.findall(text) or [""]
    at = random.randrange(len(tokens))
    match random.randrange(5):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[random.randrange(len(tokens))])
        case 2:
            tokens[at] = random.choice(_TOKEN.findall(random.choice(others)) or [""])
        case 3:
            tokens[at] = random.choice(_ODD)
        case _:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)


def _characters(random: Random, text: str, others: Sequence[str]) -> str:
    at = random.randrange(len(text) + 1)
    end = min(len(text), at + random.choice((0, 1, 1, 2, 40)))
    new = random.choice(("", random.choice(_ODD), chr(random.randrange(1, 0x2FFF)), text[at:end] * 2))
    return text[:at] + new + text[end:]


def _splice(random: Random, text: str, others: Sequence[str]) -> str:
    other = random.choice(others)
    start = random.randrange(len(other) + 1)
    at = random.randrange(len(text) + 1)
    return text[:at] + other[start : start + random.choice((5, 50, 500))] + text[at:]


def _lines(random: Random, text: str, others: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at = random.randrange(len(lines))
    if random.random() < 0.5:
        del lines[at]
    else:
        lines.insert(random.randrange(len(lines)), lines[at])
    return "".join(lines)


def _bytes(random: Random, raw: bytes) -> bytes:
    data = bytearray(raw or b" ")
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)

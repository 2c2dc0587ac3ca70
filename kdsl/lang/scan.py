"""A lexer without a grammar: cuts any text into coarse pieces and never fails.

The parser finds comments, places to continue after an error and open brackets with it; templates find the end
of a `${…}` hole. It shares the lexical rules of strings and comments with `grammar.lark`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class PieceKind(StrEnum):
    COMMENT = "comment"
    STRING = "string"
    UNTERMINATED = "unterminated"
    WORD = "word"
    NUMBER = "number"
    OPEN = "open"
    CLOSE = "close"
    OTHER = "other"


class Piece(NamedTuple):
    """One piece of text; spaces are left out. Offsets are character indexes."""

    kind: PieceKind
    text: str
    start: int
    end: int


CLOSER = {"(": ")", "[": "]", "{": "}"}

_PIECE = re.compile(
    r"""
      (?P<comment>//[^\n]*)
    | (?P<string>
          (?:[bB][rR]|[rR][bB]?)(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|\"(?!\"\")[^\"\r\n]*\"|'(?!'')[^'\r\n]*')
        | [bB]?(?:\"{3}(?:[^\"\\]|\\[\s\S]|\"(?!\"\"))*\"{3}|'{3}(?:[^'\\]|\\[\s\S]|'(?!''))*'{3}
                 |\"(?!\"\")(?:[^\"\\\r\n]|\\[^\r\n])*\"|'(?!'')(?:[^'\\\r\n]|\\[^\r\n])*')
      )
    | (?P<unterminated>(?:[bB][rR]?|[rR][bB]?)?(?:\"{3}[\s\S]*|'{3}[\s\S]*|[\"'][^\r\n]*))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<other>\|\||&&|[<>=!]=|[^ \t\r\n\f])
    """,
    re.VERBOSE,
)


def scan(text: str, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """Yield the pieces of `text[start:end]` in order."""
    for match in _PIECE.finditer(text, start, len(text) if end is None else end):
        assert match.lastgroup is not None
        yield Piece(PieceKind(match.lastgroup), match.group(), match.start(), match.end())


def find_closer(text: str, opener: int) -> int | None:
    """Return the offset of the bracket that closes the one at `opener`, None where it stays open.

    Strings and comments are skipped. A closing bracket of another shape ends the search.
    """
    stack: list[str] = []
    for piece in scan(text, opener):
        if piece.kind is PieceKind.OPEN:
            stack.append(CLOSER[piece.text])
        elif piece.kind is PieceKind.CLOSE:
            if stack.pop() != piece.text:
                return None
            if not stack:
                return piece.start
    return None


def indentation(text: str, offset: int) -> int:
    """Return the number of blanks before the text of the line of `offset`."""
    start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
    line = text[start : end if end >= 0 else len(text)]
    return len(line) - len(line.lstrip())


def is_first_on_line(text: str, offset: int) -> bool:
    """Return whether only blanks stand between the start of the line and `offset`."""
    return not text[text.rfind("\n", 0, offset) + 1 : offset].strip()

"""Finds characters in rule files, of both forms, that hide text from those who review them.

These are control characters, which a terminal obeys, and characters that change the direction of writing or
look like a line break, so that an editor shows another text than the parser reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.base.span import Source, Span
from kdsl.lang.codes import LangCode
from kdsl.lang.expression_tree import LiteralKind
from kdsl.lang.literals import spell
from kdsl.lang.scan import Piece, PieceKind, scan

_HIDDEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_HIDDEN_IN_RULES = re.compile(f"{_HIDDEN.pattern}|\r(?!\n)")
"""Also a carriage return without a line feed: an editor may end the line there, and no comment ends with it.
YAML ends a line there as well.
"""


def hidden_characters(source: Source) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each string and comment with such characters, about the first of them."""
    if not _HIDDEN_IN_RULES.search(source.text):
        return
    for piece in scan(source.text):
        # The character after the piece is read as well: it may be the line feed after a carriage return.
        found = _HIDDEN_IN_RULES.finditer(source.text, piece.start, piece.end + 1)
        places = [match.start() for match in found if match.start() < piece.end]
        if places and piece.kind in (PieceKind.COMMENT, PieceKind.STRING):
            yield _hidden(source, piece, places)


def hidden_in_yaml(source: Source) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each line of a YAML text with such characters, about the first of them."""
    last = 0
    for match in _HIDDEN.finditer(source.text):
        span = Span(source, *match.span())
        if span.line > last:
            last = span.line
            title = f"the character `U+{ord(span.text):04X}` has no place in a rule file"
            help_ = f"remove it, or write `{_escape(match)}` inside double quotes"
            yield Diagnostic(LangCode.BAD_CHARACTER, title, span, "it is invisible", help=(help_,))


def without_hidden(text: str) -> str:
    """Return a YAML text that has such characters in double quotes alone, with escapes instead."""
    return _HIDDEN.sub(_escape, text)


def is_hiding(text: str) -> bool:
    """Return whether a text has such characters."""
    return _HIDDEN.search(text) is not None


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04X}"


def _hidden(source: Source, piece: Piece, places: list[int]) -> Diagnostic:
    spans = [Span(source, at, at + 1) for at in places]
    returns = [span for span in spans if span.text == "\r"]
    if piece.kind is PieceKind.COMMENT and returns:
        return Diagnostic(
            LangCode.BAD_CHARACTER,
            "a carriage return without a line feed does not end the comment",
            returns[0],
            "an editor may end it here",
            help=("let the line end with a line feed; without one the comment goes on",),
        )
    title = f"the character `U+{ord(spans[0].text):04X}` has no place in a {piece.kind}"
    if piece.kind is PieceKind.COMMENT:
        what, texts = "remove it", ["" for _ in spans]
    else:
        texts = [spell(LiteralKind.STRING, span.text)[1:-1] for span in spans]
        what = f"write `{texts[0]}`"
    is_plain = piece.kind is PieceKind.COMMENT or piece.text[0] in "\"'"
    edits = [Edit(span, text) for span, text in zip(spans, texts, strict=True)] if is_plain else []
    help_ = () if is_plain else ("write it as an escape, which a string with `r` does not have",)
    fixes = (Fix(what, tuple(edits), Applicability.CERTAIN),) if edits else ()
    return Diagnostic(LangCode.BAD_CHARACTER, title, spans[0], "it is invisible", help=help_, fixes=fixes)

"""Rewrites rule files in the canonical style without changing their meaning. `kdsl fmt` uses it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.span import Source, Span
from kdsl.lang.codes import LangCode
from kdsl.lang.parser import parse_file
from kdsl.lang.printer import format_file
from kdsl.lang.scan import PieceKind, scan


@dataclass(frozen=True, slots=True)
class FormatResult:
    """The new text, or None with the diagnostics that explain why."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]


def format_source(source: Source) -> FormatResult:
    """Format a rule file. The result parses to the same tree with the same comments, or there is no
    result.
    """
    before = parse_file(source)
    if before.file is None or has_errors(before.diagnostics):
        return FormatResult(None, before.diagnostics)
    text = format_file(before.file)
    after = parse_file(Source(source.path, text))
    if after.diagnostics or after.file != before.file:
        return _refuse(source, "another meaning")
    if _comment_texts(source.text) != _comment_texts(text):
        return _refuse(source, "other comments")
    return FormatResult(text, before.diagnostics)


def _comment_texts(text: str) -> Counter[str]:
    """Count the comments of a text by their words, without the parser, which is being checked."""
    return Counter(piece.text.lstrip("/").strip() for piece in scan(text) if piece.kind is PieceKind.COMMENT)


def _refuse(source: Source, difference: str) -> FormatResult:
    return FormatResult(
        None,
        (
            Diagnostic(
                LangCode.FORMAT_REFUSED,
                f"not formatted: the result would have had {difference}",
                Span(source, 0, 0),
                help=("this is a mistake in kdsl, please report it with the file",),
            ),
        ),
    )

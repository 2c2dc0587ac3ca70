"""Reasons with holes: `"Insufficient ${r}"` cut into text and expressions. The readers of rule files use it.

A hole is `${expr}`; braces and strings inside the expression nest as usual. `$$` stands for one `$`, and a
`$` before any other character is itself, so `"costs $5"` needs no escape and a literal `${` is written `$${`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.lang.codes import LangCode
from kdsl.lang.expression_builder import Locate
from kdsl.lang.expression_tree import Expr, LiteralKind
from kdsl.lang.literals import DecodedString, decode_string, spell
from kdsl.lang.scan import find_closer

ParseText = Callable[[str, Locate], tuple[Expr | None, tuple[Diagnostic, ...]]]
"""Parses a text that is one expression; the parser passes itself in."""


@dataclass(frozen=True, slots=True)
class Hole:
    """The source of one expression. `offsets[i]` is the place of its character `i` in the literal."""

    text: str
    offsets: tuple[int, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class CutTemplate:
    """The parts of a reason in order; adjacent text is one part."""

    parts: tuple[str | Hole, ...]
    decoded: DecodedString


def cut_template(raw: str) -> CutTemplate:
    """Cut a string literal, quotes included, at its holes."""
    decoded = decode_string(raw)
    return CutTemplate(cut_text(decoded.text, decoded.offsets), decoded)


def cut_text(text: str, offsets: Sequence[int]) -> tuple[str | Hole, ...]:
    """Cut a text without quotes and escapes; `offsets[i]` is the place of its character `i`."""
    parts: list[str | Hole] = []
    pending = ""
    at = 0
    while at < len(text):
        if text.startswith("$$", at):
            pending, at = pending + "$", at + 2
        elif text.startswith("${", at):
            closer = find_closer(text, at + 1)
            end = len(text) if closer is None else closer
            if pending:
                parts.append(pending)
            parts.append(Hole(text[at + 2 : end], tuple(offsets[at + 2 : end + 1]), closer is not None))
            pending, at = "", end + 1
        else:
            pending, at = pending + text[at], at + 1
    if pending or not parts:
        parts.append(pending)
    return tuple(parts)


def read_parts(
    parts: Iterable[str | Hole], place: Locate, parse: ParseText
) -> tuple[tuple[str | Expr, ...], tuple[Diagnostic, ...]]:
    """Parse the holes. `place` finds offsets in the file. Invalid holes are left out and reported."""
    read: list[str | Expr] = []
    found: list[Diagnostic] = []
    for part in parts:
        if isinstance(part, str):
            read.append(part)
            continue
        expr, diagnostics = _read_hole(part, place, parse)
        found += diagnostics
        if expr is not None:
            read.append(expr)
    return tuple(read), tuple(found)


def _read_hole(hole: Hole, place: Locate, parse: ParseText) -> tuple[Expr | None, tuple[Diagnostic, ...]]:
    def locate(low: int, high: int) -> Span:
        # INVARIANT: the grammar has no empty token, but an error may stand at the end of the hole.
        return place(hole.offsets[low], hole.offsets[high])

    whole = locate(0, len(hole.text))
    opening = Span(whole.source, whole.start - 2, whole.start)
    if not hole.closed:
        return None, (unclosed_hole(opening),)
    if not hole.text.strip():
        title = "the hole `${}` of the reason is empty"
        return None, (Diagnostic(LangCode.BAD_HOLE, title, Span(whole.source, opening.start, whole.end + 1)),)
    return parse(hole.text, locate)


def unclosed_hole(opening: Span) -> Diagnostic:
    """Return the diagnostic of a hole without its closing brace; `opening` is the place of its `${`."""
    return Diagnostic(
        LangCode.BAD_HOLE,
        "the hole `${` of the reason has no closing brace",
        opening,
        help=(
            "quotes inside a hole must be of another kind than those around it: \"${m['key']}\"",
            "write `$$` for a dollar sign that opens no hole",
        ),
    )


def spell_template(parts: tuple[str | Expr, ...], format_expr: Callable[[Expr], str]) -> str:
    """Return the parts as one string literal that cuts into the same parts."""
    return spell(LiteralKind.STRING, join_parts(parts, format_expr))


def join_parts(parts: tuple[str | Expr, ...], format_expr: Callable[[Expr], str]) -> str:
    """Return the parts as a text without quotes and escapes that cuts into the same parts."""
    return "".join(
        part.replace("$", "$$") if isinstance(part, str) else f"${{{format_expr(part)}}}" for part in parts
    )

"""Reasons with holes: `"Insufficient ${r}"` cut into text and expressions. The tree builder uses it.

A hole is `${expr}`; braces and strings inside the expression nest as usual. `$$` stands for one `$`, and a
`$` before anything else is itself, so `"costs $5"` needs no care and a literal `${` is written `$${`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.lang.codes import LangCode
from kdsl.lang.literals import DecodedString, decode_string, spell
from kdsl.lang.scan import find_closer
from kdsl.lang.tree import Expr, LiteralKind


@dataclass(frozen=True, slots=True)
class Hole:
    """The source of one expression. `offsets[i]` is where its character `i` stands in the literal."""

    text: str
    offsets: tuple[int, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class CutTemplate:
    """The parts of a reason in order; neighbouring text is one part."""

    parts: tuple[str | Hole, ...]
    decoded: DecodedString


def cut_template(raw: str) -> CutTemplate:
    """Cut a string literal, quotes included, at its holes."""
    decoded = decode_string(raw)
    text, offsets = decoded.text, decoded.offsets
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
            parts.append(Hole(text[at + 2 : end], offsets[at + 2 : end + 1], closer is not None))
            pending, at = "", end + 1
        else:
            pending, at = pending + text[at], at + 1
    if pending or not parts:
        parts.append(pending)
    return CutTemplate(tuple(parts), decoded)


def unclosed_hole(opening: Span) -> Diagnostic:
    """Describe a hole without its closing brace; `opening` is the place of its `${`."""
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
    """Write the parts as one string literal that cuts into the same parts."""
    text = "".join(
        part.replace("$", "$$") if isinstance(part, str) else f"${{{format_expr(part)}}}" for part in parts
    )
    return spell(LiteralKind.STRING, text)

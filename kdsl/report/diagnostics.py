"""Diagnostics as text for people: with their source lines, or one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kdsl.base.diagnostic import Diagnostic, Fix, Severity
from kdsl.base.span import Source
from kdsl.base.visible import visible
from kdsl.report.snippet import Mark, Row, draw

_COLOURS = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "gutter": "\x1b[1;34m",
    "secondary": "\x1b[1;34m",
    "help": "\x1b[1;36m",
    "title": "\x1b[1m",
}
_PLUGINS = "K10"
_ACCESS = "K115"
_RESET = "\x1b[0m"
_NUMBER = re.compile("[0-9]+")
_DIGITS = 12


def render(diagnostics: Iterable[Diagnostic], format: str = "full", colour: bool = False) -> str:
    """Return diagnostics as text, sorted by file and position, and a line with counts.

    `format` is `full` or `concise` (`path:line:column: error[K0101] title`). The text does not end with a
    line break.
    """
    ordered = in_order(diagnostics)
    if not ordered:
        return ""
    paint = _Paint(colour)
    if format == "concise":
        return "\n".join((*(_concise(diagnostic, paint) for diagnostic in ordered), summary(ordered)))
    if format != "full":
        raise ValueError(f"unknown format `{format}`")
    return "\n\n".join((*("\n".join(_full(diagnostic, paint)) for diagnostic in ordered), summary(ordered)))


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Count diagnostics: `2 errors, 1 warning`."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    counts = ((severities.count(severity), str(severity)) for severity in Severity)
    return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)


def fix_legend(diagnostics: Iterable[Diagnostic], command: str) -> str:
    """Explain `[fix 1]` and `[choice 1]` for a command with `--fix`; "" if neither occurs."""
    words = {_word(fix) for diagnostic in diagnostics for fix in diagnostic.fixes}
    certain = f"[fix …] is certain: `{command} --fix` applies it, `{command} --diff` shows it"
    open_ = "[choice …] is left to you"
    return "; ".join(text for word, text in (("fix", certain), ("choice", open_)) if word in words)


def _word(fix: Fix) -> str:
    return "fix" if fix.is_certain else "choice"


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sort diagnostics by file and position; those of plugins come first, since they cause others, and those
    of the way to the cluster last.
    """

    def key(each: Diagnostic) -> tuple[bool, bool, str, int, str, str]:
        return not each.code.startswith(_PLUGINS), each.code.startswith(_ACCESS), *_place(each)

    return sorted(diagnostics, key=key)


def _place(diagnostic: Diagnostic) -> tuple[str, int, str, str]:
    if diagnostic.span:
        return diagnostic.span.source.path, diagnostic.span.start, diagnostic.code, diagnostic.title
    # Document 2 of a file comes before document 10.
    where = _NUMBER.sub(lambda found: found[0].zfill(_DIGITS), diagnostic.where)
    return where, -1, diagnostic.code, diagnostic.title


class _Paint:
    """Colours text, or leaves it unchanged."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, name: str, text: str) -> str:
        return f"{_COLOURS[name]}{text}{_RESET}" if self._colour and text else text


def _concise(diagnostic: Diagnostic, paint: _Paint) -> str:
    place = str(diagnostic.span) if diagnostic.span else diagnostic.where
    head = paint(diagnostic.severity, f"{diagnostic.severity}[{diagnostic.code}]")
    return (
        f"{visible(place)}: {head} {visible(diagnostic.title)}"
        if place
        else f"{head} {visible(diagnostic.title)}"
    )


def _full(diagnostic: Diagnostic, paint: _Paint) -> Iterator[str]:
    head = paint(diagnostic.severity, f"{diagnostic.severity}[{diagnostic.code}]")
    yield f"{head}{paint('title', f': {visible(diagnostic.title)}')}"
    sources = _marks(diagnostic)
    last_lines = [mark.last.line for marks in sources.values() for mark in marks]
    width = max(len(str(max(last_lines, default=0))), 2)
    blank = " " * width
    if diagnostic.where and not sources:
        yield f"{blank}{paint('gutter', '-->')} {visible(diagnostic.where)}"
    arrow = "-->"
    for source, marks in sources.items():
        yield f"{blank}{paint('gutter', arrow)} {visible(str(marks[0].span))}"
        yield f"{blank} {paint('gutter', '|')}"
        for row in draw(source, marks):
            yield _row(row, width, diagnostic.severity, paint)
        arrow = ":::"
    for note in diagnostic.notes:
        yield f"{blank} {paint('gutter', '=')} {paint('title', 'note')}: {visible(note)}"
    for line in diagnostic.help:
        yield f"{blank} {paint('gutter', '=')} {paint('help', 'help')}: {visible(line)}"
    for number, fix in enumerate(diagnostic.fixes, 1):
        mark = f"[{_word(fix)} {number}]"
        yield f"{blank} {paint('gutter', '=')} {paint('help', 'help')}: {visible(fix.title)} {mark}"


def _marks(diagnostic: Diagnostic) -> dict[Source, list[Mark]]:
    """Group marked spans by source, the primary source first."""
    sources: dict[Source, list[Mark]] = {}
    if diagnostic.span:
        sources[diagnostic.span.source] = [Mark(diagnostic.span, diagnostic.label, is_primary=True)]
    for label in diagnostic.secondary:
        sources.setdefault(label.span.source, []).append(Mark(label.span, label.text, is_primary=False))
    return sources


def _row(row: Row, width: int, severity: Severity, paint: _Paint) -> str:
    if row.number is None and row.is_primary is None:
        return paint("gutter", f"{'...':>{width + 2}}")
    number = "" if row.number is None else str(row.number)
    text = (
        row.text if row.is_primary is None else paint(severity if row.is_primary else "secondary", row.text)
    )
    return f"{paint('gutter', f'{number:>{width}} |')} {text}".rstrip()

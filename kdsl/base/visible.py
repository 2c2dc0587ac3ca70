"""Escapes text for a terminal: control sequences, and characters that look like another line.

Every text for people goes through this module: tables, explanations, diagnostics, messages. Names, reasons
and annotations come from anywhere. Documents for machines (`report.json_text`) keep their values.
"""

from __future__ import annotations

from collections.abc import Iterable


def visible(text: str) -> str:
    """Return the text with all but printable characters escaped: control characters (C0, DEL, C1), line
    breaks, tabs, characters that change the direction of writing, and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_lines(lines: Iterable[str]) -> str:
    """Return lines joined to one text. Each stays one line, whatever characters it holds."""
    return "\n".join(map(visible, lines))


def visible_sections(sections: Iterable[Iterable[str]]) -> str:
    """Return sections of lines as one text, with a blank line between; empty sections are left out."""
    return "\n\n".join(filter(None, map(visible_lines, sections)))


def visible_text(text: str) -> str:
    """Return a text of several lines, escaped except for its line breaks and tabs."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))

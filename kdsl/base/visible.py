"""Text that a terminal only shows: what it would obey, or what would look like another line, is escaped.

Every text for people goes through here: tables, explanations, diagnostics, messages. Names, reasons and
annotations come from anywhere. Documents for machines (`report.json_text`) keep their values.
"""

from __future__ import annotations

from collections.abc import Iterable


def visible(text: str) -> str:
    """Return the text with everything but printable characters as its escape: control characters (C0, DEL,
    C1), line breaks, tabs, what changes the direction of writing, and halves of characters.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_lines(lines: Iterable[str]) -> str:
    """Return lines as one text. A line is one line, whatever it holds."""
    return "\n".join(map(visible, lines))


def visible_text(text: str) -> str:
    """Return a text of several lines with all but its line breaks and tabs made visible."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))

"""A small document language that breaks lines to a width; the printer describes code with it.

The model is Wadler's ("A prettier printer", 2003) with the linear-time rendering of Lindig ("Strictly
pretty", 2000): a group stands on one line if it fits, or else all line breaks of its own are taken. `Align`
fixes the indent to the current column, and `Fill` decides for each of its breaks alone, as in a paragraph.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Characters. A line break inside (a triple-quoted string) is written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A possible line break; `flat` replaces it where the line is not broken."""

    flat: str = " "


@dataclass(frozen=True, slots=True)
class HardLine:
    """A line break that is always taken; it breaks the groups around it."""


@dataclass(frozen=True, slots=True)
class Concat:
    parts: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Indents the lines broken inside by `by` more columns, or fewer where it is negative."""

    by: int
    doc: Doc


@dataclass(frozen=True, slots=True)
class Align:
    """Indents the lines broken inside to the current column."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Group:
    """Stands on one line, or breaks all of its own lines."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Fill:
    """Items with commas that share lines as far as they fit. `started`: an item stands before these."""

    items: tuple[Doc, ...]
    comma: str = ","
    started: bool = False


Doc = Text | Line | HardLine | Concat | Nest | Align | Group | Fill

_Job = tuple[int, bool, Doc]
"""The indent, whether breaks are not taken here, and the document to write."""


def concat(*parts: Doc | str) -> Concat:
    """Join documents and plain strings."""
    return Concat(tuple(Text(part) if isinstance(part, str) else part for part in parts))


def render(doc: Doc, width: int, indent: int = 0) -> str:
    """Return the text of the document. Its first line starts at column `indent`; the indent is not
    written.
    """
    out: list[str] = []
    column = indent
    jobs: list[_Job] = [(indent, False, doc)]
    while jobs:
        margin, flat, item = jobs.pop()
        match item:
            case Text(text):
                out.append(text)
                column = len(text) - text.rfind("\n") - 1 if "\n" in text else column + len(text)
            case Line(blank) if flat:
                out.append(blank)
                column += len(blank)
            case Line() | HardLine():
                out.append("\n" + " " * margin)
                column = margin
            case Concat(parts):
                jobs.extend((margin, flat, part) for part in reversed(parts))
            case Nest(by, inner):
                jobs.append((max(margin + by, 0), flat, inner))
            case Align(inner):
                jobs.append((column, flat, inner))
            case Group(inner):
                jobs.append((margin, flat or _fits(width - column, (margin, True, inner), jobs), inner))
            case Fill(items, comma, started) if items:
                rest: list[_Job] = [(margin, flat, Fill(items[1:], comma, started=True))]
                joined = concat(comma, " ", items[0])
                if not started:
                    jobs += [*rest, (margin, flat, Group(items[0]))]
                elif flat or _fits(width - column, (margin, True, joined), [*jobs, *rest]):
                    jobs += [*rest, (margin, True, joined)]
                else:
                    jobs += [*rest, (margin, False, concat(comma, HardLine(), Group(items[0])))]
    return "".join(out)


def _fits(room: int, job: _Job, following: list[_Job]) -> bool:
    """Return whether the job and the jobs up to the next possible break take at most `room` columns."""
    jobs = [job]
    index = len(following)
    while room >= 0:
        if not jobs:
            if not index:
                return True
            index -= 1
            jobs.append(following[index])
        margin, flat, item = jobs.pop()
        match item:
            case Text(text):
                first, line_break, _ = text.partition("\n")
                room -= len(first)
                if line_break:
                    return room >= 0
            case Line(blank) if flat:
                room -= len(blank)
            case Line():
                return True
            case HardLine():
                return not flat
            case Concat(parts):
                jobs.extend((margin, flat, part) for part in reversed(parts))
            case Nest(_, inner) | Align(inner) | Group(inner):
                jobs.append((margin, flat, inner))
            case Fill(items, comma, started) if items:
                if started and not flat:
                    return room >= len(comma)
                before = f"{comma} " if started else ""
                jobs += [
                    (margin, flat, Fill(items[1:], comma, started=True)),
                    (margin, flat, concat(before, items[0])),
                ]
    return False

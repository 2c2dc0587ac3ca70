"""Draws the source lines of a diagnostic, with markers below them, for `diagnostics.py`.

Columns on the screen are not characters: tabs are widened, East Asian wide characters take two columns,
combining marks none, and control characters are replaced.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from kdsl.base.span import Position, Source, Span
from kdsl.base.visible import visible

TAB = "    "
MAX_COLUMNS = 120
_CONTEXT = 40
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to mark. The primary one gets `^`, others `-`."""

    span: Span
    text: str
    is_primary: bool

    @property
    def first(self) -> Position:
        return self.span.source.position(self.span.start)

    @property
    def last(self) -> Position:
        """Return the position of the last character; for an empty span, its start."""
        return self.span.source.position(max(self.span.start, self.span.end - 1))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a drawing. `number` is the line of the source, or None for a row of markers.

    `is_primary` is the kind of marker in the row, None for no marker. A row without text and number stands
    for omitted lines.
    """

    number: int | None
    text: str
    is_primary: bool | None = None


def draw(source: Source, marks: Sequence[Mark]) -> Iterator[Row]:
    """Draw every line on which a mark starts or ends, in order; gaps are one row without text and number."""
    by_line: dict[int, list[tuple[int, int | None, Mark]]] = {}
    for mark in marks:
        first, last = mark.first, mark.last
        is_single = first.line == last.line
        by_line.setdefault(first.line, []).append((first.column, last.column if is_single else None, mark))
        if not is_single:
            by_line.setdefault(last.line, []).append((0, last.column, mark))
    previous: int | None = None
    for number in sorted(by_line):
        if previous is not None and number > previous + 1:
            yield Row(None, "")
        yield from _draw_line(source.line(number), number, sorted(by_line[number], key=lambda each: each[0]))
        previous = number


def _draw_line(line: str, number: int, ranges: Sequence[tuple[int, int | None, Mark]]) -> Iterator[Row]:
    """Draw one line, a long one again for the marks that its shown part does not reach.

    A range has a first column (0: the start of the text) and a last one (None: the end).
    """
    line = line.rstrip("\r")
    cells, columns = _cells(line)
    indent = len(line) - len(line.lstrip())
    left = list(ranges)
    while left:
        low, high = _window(cells, columns, max(left[0][0] - 1, indent))
        reached = sum(max(first - 1, indent) < high for first, _, _ in left) or len(left)
        yield from _draw_part(line, number, (low, high), left[:reached])
        del left[:reached]


def _draw_part(
    line: str, number: int, window: tuple[int, int], ranges: Sequence[tuple[int, int | None, Mark]]
) -> Iterator[Row]:
    """Draw the part of a line in the `window`, with the marks in it."""
    cells, _ = _cells(line)
    indent = len(line) - len(line.lstrip())
    low, high = window
    shown = "".join(cell for cell, _ in cells[low:high])
    lead = _CUT if low else ""
    yield Row(number, f"{lead}{shown}{_CUT if high < len(cells) else ''}".rstrip())
    offsets = [len(lead) + width for width in accumulate((width for _, width in cells[low:high]), initial=0)]
    for first, last, mark in ranges:
        start = offsets[min(max((first or indent + 1) - 1 - low, 0), high - low)]
        end = offsets[min(max((len(line) if last is None else last) - low, 0), high - low)]
        marker = ("^" if mark.is_primary else "-") * max(end - start, 1)
        text = "" if last is None else visible(mark.text)
        yield Row(None, f"{' ' * start}{marker} {text}".rstrip(), mark.is_primary)


@lru_cache(maxsize=8)
def _cells(line: str) -> tuple[Sequence[tuple[str, int]], int]:
    """Return the cells of a line and its number of columns; a long line may have thousands of errors."""
    cells = [_cell(character) for character in line]
    return cells, sum(width for _, width in cells)


def _cell(character: str) -> tuple[str, int]:
    """Return the displayed form of a character and its number of columns."""
    if character == "\t":
        return TAB, len(TAB)
    if unicodedata.combining(character):
        return character, 0
    if not character.isprintable():
        return "\ufffd", 1
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _window(cells: Sequence[tuple[str, int]], columns: int, focus: int) -> tuple[int, int]:
    """Return the visible part of a long line, around the character `focus`."""
    if columns <= MAX_COLUMNS:
        return 0, len(cells)
    low = 0 if focus <= MAX_COLUMNS - _CONTEXT else focus - _CONTEXT
    high, room = low, MAX_COLUMNS
    while high < len(cells) and room >= cells[high][1]:
        room -= cells[high][1]
        high += 1
    return low, high

"""Plain tables in the style of kubectl: a header in capitals, two spaces between columns, no borders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from kdsl.base.visible import visible


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Return the lines of a table, each cell on one line. `right` are the indexes of right-aligned
    columns.
    """
    right = frozenset(right)
    lines = [list(header), *(list(map(visible, row)) for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(header))]
    return [_line(line, widths, right) for line in lines]


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        fill = " " * (width - cell_len(cell))
        padded.append(fill + cell if column in right else cell + fill)
    return "  ".join(padded).rstrip()


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text as lines of `width` columns, broken between words; those after the first are indented.

    A wider word gets its own line. Control characters are shown as escapes.
    """
    text = visible(text)
    lines: list[str] = []
    line = start = text[: len(text) - len(text.lstrip(" "))]
    for word in text.split():
        longer = f"{line}{word}" if line == start else f"{line} {word}"
        if line != start and cell_len(longer) > width:
            lines.append(line)
            start = indent
            longer = f"{indent}{word}"
        line = longer
    return [*lines, line]


def plural(count: int, noun: str) -> str:
    """Return `1 pod`, `2 pods`, `1,000 pods`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

"""Places in rule files. Every syntax node, diagnostic and verdict points into a `Source` through a `Span`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Position(NamedTuple):
    """A line and a column, as shown to users: both start at 1, columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Source:
    """One text and the name to show for it. Compared by identity: a file that is read again is another
    source.

    `places` are the absolute paths that decide to whom the file belongs (see `file_policy`); empty for a text
    that is in no file.
    """

    path: str
    text: str = field(repr=False)
    places: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(at + 1 for at, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> Position:
        """Return the position of `offset`, a character index from 0 to the length of the text."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return line `number` (from 1) without its line break."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start).line

    @property
    def column(self) -> int:
        return self.source.position(self.start).column

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def site(self) -> str:
        """Return the short form shown beside a verdict: `path:line`."""
        return f"{self.source.path}:{self.line}"

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of `other`, of the same source."""
        return Span(self.source, self.start, other.end)

    def begins_in(self, outer: Span) -> bool:
        """Return whether this span begins inside another one, of the same source."""
        return self.source is outer.source and outer.start <= self.start < outer.end

    def __str__(self) -> str:
        position = self.source.position(self.start)
        return f"{self.source.path}:{position.line}:{position.column}"

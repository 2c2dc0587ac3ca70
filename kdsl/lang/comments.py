"""Assigns each comment to its statement. The tree builder uses it, innermost blocks first.

A comment on the last line of a statement trails it; any other leads the next statement, or dangles at the end
of the block. A comment inside a statement (between the lines of an expression) moves above it. No comment is
dropped: each is taken exactly once, by the innermost block around it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, cast

from kdsl.base.span import Source, Span
from kdsl.lang.scan import is_first_on_line
from kdsl.lang.tree import Comment, Declared, Statement

_S = TypeVar("_S", bound=Statement)


class Comments:
    """The comments of one source that no block has taken yet."""

    def __init__(self, source: Source, places: Sequence[tuple[int, int]]) -> None:
        self._text = source.text
        self._comments = [
            Comment(
                source.text[start + 2 : end].rstrip(),
                own_line=is_first_on_line(source.text, start),
                blank_before=self._has_blank_before(start),
                span=Span(source, start, end),
            )
            for start, end in places
        ]
        self._starts = [start for start, _ in places]

    def take(self, start: int, end: int) -> list[Comment]:
        """Return the comments between two offsets that were not taken before."""
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        taken = self._comments[low:high]
        del self._comments[low:high]
        del self._starts[low:high]
        return taken

    def attach(
        self, statements: Sequence[_S], start: int, end: int
    ) -> tuple[tuple[_S, ...], tuple[Comment, ...]]:
        """Assign the comments between two offsets to the statements there; return the statements and the
        other comments.
        """
        attached: list[_S] = []
        for index, statement in enumerate(statements):
            above = self.take(start, statement.span.start)
            inside = self.take(statement.span.start, statement.span.end)
            following = statements[index + 1].span.start if index + 1 < len(statements) else end
            line_end = self._text.find("\n", statement.span.end)
            behind = self.take(
                statement.span.end, min(following, len(self._text) if line_end < 0 else line_end)
            )
            attached.append(self._with_comments(statement, above + inside, behind))
            start = statement.span.end
        return tuple(attached), tuple(self.take(start, end))

    def _with_comments(self, statement: _S, leading: list[Comment], behind: list[Comment]) -> _S:
        blank = self._has_blank_before(statement.span.start)
        doc: tuple[str, ...] = ()
        if isinstance(statement, Declared):
            leading, doc, blank = _split_doc(leading, blank)
            statement = cast(_S, replace(statement, doc=doc))
        return replace(
            statement,
            leading=tuple(leading),
            # A `//` comment reaches to the end of its line, so at most one stands behind a statement.
            trailing=behind[0] if behind else None,
            blank_before=blank,
        )

    def _has_blank_before(self, offset: int) -> bool:
        """Return whether the line above `offset` is blank; only blanks stand between."""
        at = offset
        while at and self._text[at - 1].isspace():
            at -= 1
        return self._text.count("\n", at, offset) > 1


def _split_doc(leading: list[Comment], blank: bool) -> tuple[list[Comment], tuple[str, ...], bool]:
    """Separate the last run of `///` lines above a declaration, its documentation, from the other
    comments.
    """
    end = len(leading)
    while end and not _is_doc(leading[end - 1]):
        end -= 1
    start = end
    while start and _is_doc(leading[start - 1]) and (start == end or not leading[start].blank_before):
        start -= 1
    if start == end:
        return leading, (), blank
    lines = tuple(comment.text[1:].removeprefix(" ") for comment in leading[start:end])
    return leading[:start] + leading[end:], lines, leading[start].blank_before


def _is_doc(comment: Comment) -> bool:
    return comment.text.startswith("/") and not comment.text.startswith("//")

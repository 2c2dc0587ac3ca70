"""Where a pattern matches: the leftmost match, and of those the one that the pattern prefers, as in Go.

Threads of Pike's construction go through the text side by side, in order of preference: no backtracking. Used
by `find` and `findAll`. The work is bounded, as all matches of a pattern together may take quadratic time.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.plan.regex import charset
from kdsl.plan.regex.automaton import Regex, Side, holds, side_of
from kdsl.plan.regex.syntax import RegexError

MAX_WORK = 1_000_000
"""The most steps that finding all matches in one text may take."""

_Threads = dict[int, int]
"""Where the match of a thread began, by its step, in order of preference."""


class Finder:
    """Finds the matches of a pattern in one text; RegexError where that takes more than `MAX_WORK` steps."""

    def __init__(self, regex: Regex, text: str) -> None:
        self._program = regex.program
        self._start = regex.start
        self._text = text
        self._work = 0

    def all(self) -> Iterator[str]:
        """Yield the matches from left to right; an empty one right behind another does not count."""
        at, last_end = 0, -1
        while at <= len(self._text):
            found = self.first(at)
            if found is None:
                return
            start, end = found
            if end > start or start != last_end:
                yield self._text[start:end]
            at = end if end > at else at + 1
            last_end = end

    def first(self, at: int = 0) -> tuple[int, int] | None:
        """Return start and end of the first match that begins at `at` or later."""
        threads: _Threads = {}
        found: tuple[int, int] | None = None
        for place in range(at, len(self._text) + 1):
            if found is None:
                threads.setdefault(self._start, place)
            elif not threads:
                break
            threads, match = self._closure(threads, place)
            found = match or found
            if place < len(self._text):
                threads = self._advance(threads, ord(self._text[place]))
        return found

    def _closure(self, threads: _Threads, place: int) -> tuple[_Threads, tuple[int, int] | None]:
        """Follow all steps that read nothing.

        Return the threads that read a character, and the match that was reached if one was: threads that are
        less preferred are given up.
        """
        before, after = self._side(place - 1), self._side(place)
        reading: _Threads = {}
        seen: set[int] = set()
        for first, start in threads.items():
            open_steps = [first]
            while open_steps:
                index = open_steps.pop()
                if index in seen:
                    continue
                seen.add(index)
                step = self._program[index]
                if not step.targets:
                    self._count(len(seen))
                    return reading, (start, place)
                if step.ranges is not None:
                    reading[index] = start
                elif step.place is None or holds(step.place, before, after):
                    open_steps.extend(reversed(step.targets))
        self._count(len(seen))
        return reading, None

    def _advance(self, threads: _Threads, code: int) -> _Threads:
        following: _Threads = {}
        for index, start in threads.items():
            step = self._program[index]
            if step.ranges is not None and charset.contains(step.ranges, code):
                following.setdefault(step.targets[0], start)
        return following

    def _side(self, place: int) -> Side:
        return side_of(self._text[place]) if 0 <= place < len(self._text) else Side.NOTHING

    def _count(self, steps: int) -> None:
        self._work += steps + 1
        if self._work > MAX_WORK:
            raise RegexError("the search takes too long")

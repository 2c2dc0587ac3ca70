"""Texts that regular expressions match: a small one for each pattern.

The engine that runs the rules verifies each text: another engine may read some patterns differently, and a
backtracking one may never return.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kdsl.eval.patterns import PatternError, compile_pattern

_CLASSES: Final = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "", "B": "", "A": "", "z": ""}
_COUNT: Final = re.compile(r"\{(\d+)(,\d*)?\}")
_MOST: Final = 100
"""The longest generated text: a label or name cannot be longer."""
_DEEPEST: Final = 50


def example(pattern: str) -> str | None:
    """Return a text that a pattern matches; None where none was found."""
    try:
        text = _Reader(pattern).alternatives(0)
        return text if compile_pattern(pattern).matches(text, _free) else None
    except (PatternError, re.error, IndexError, ValueError, OverflowError):
        return None


def _free(steps: int) -> None:
    """Do nothing: patterns and texts of this size need few steps."""


@dataclass(slots=True)
class _Reader:
    """Reads a pattern; `at` is the current position."""

    pattern: str
    at: int = 0

    def alternatives(self, depth: int) -> str:
        """Return a text for the first of `a|b|c`."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        texts = [self._sequence(depth)]
        while self.at < len(self.pattern) and self.pattern[self.at] == "|":
            self.at += 1
            texts.append(self._sequence(depth))
        return texts[0]

    def _sequence(self, depth: int) -> str:
        text = ""
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            text += self._atom(depth) * self._count()
            if len(text) > _MOST:
                raise ValueError("too long")
        return text

    def _atom(self, depth: int) -> str:
        char = self._next()
        match char:
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "\\":
                char = self._next()
                return _CLASSES.get(char, _ESCAPES.get(char, char))
            case "[":
                return self._class()
            case "(":
                if self.pattern.startswith("?", self.at):
                    self.at = min(at for at in map(self._find, ":>)") if at >= 0) + 1
                    if self.pattern[self.at - 1] == ")":
                        return ""
                inner = self.alternatives(depth + 1)
                self._next()
                return inner
        return char

    def _class(self) -> str:
        """Return a character of a class such as `[a-z0-9]`."""
        negated = self.pattern.startswith("^", self.at)
        start = self.at + negated
        end = self.pattern.index("]", start + 1)
        whole, self.at = self.pattern[self.at - 1 : end + 1], end + 1
        if not negated and self.pattern[start] not in "\\[":
            return self.pattern[start]
        return next(char for char in "a0-_.A b" if re.fullmatch(whole, char))

    def _count(self) -> int:
        """Return the number of times to repeat the last atom: the smallest one allowed."""
        count = 1
        if self.at < len(self.pattern) and self.pattern[self.at] in "*?+":
            count = 1 if self._next() == "+" else 0
        elif found := _COUNT.match(self.pattern, self.at):
            self.at, count = found.end(), min(int(found[1]), _MOST + 1)
        else:
            return 1
        if self.pattern.startswith("?", self.at):
            self.at += 1
        return count

    def _next(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def _find(self, char: str) -> int:
        return self.pattern.find(char, self.at)

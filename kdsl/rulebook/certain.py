"""The errors that are certain in rules of which some text could not be read.

What was left out may declare a name or a rule, prove a key, or be the rest of an expression. Errors that may
come from that are reported once everything can be read.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import Final

from kdsl.analysis.codes import AnalysisCode
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source, Span
from kdsl.check.model.codes import CheckCode
from kdsl.lang.codes import LangCode
from kdsl.lang.program import Program
from kdsl.lang.tree import File
from kdsl.lang.twin import is_twin
from kdsl.lang.words import STATEMENT_STARTERS, TERMINAL_OF_STARTER
from kdsl.plan.rules.codes import PlanCode

_OF_STATEMENTS: Final[frozenset[StrEnum]] = frozenset(
    {
        *(CheckCode.NO_OVERLOAD, CheckCode.ARGUMENT_COUNT, CheckCode.WRONG_TYPE, CheckCode.MIXED_TYPES),
        *(CheckCode.BAD_TEXT, CheckCode.NOT_IN_RULES, CheckCode.COMPARED_VIEWS, CheckCode.MACRO_FORM),
        *(CheckCode.UNKNOWN_TYPE, CheckCode.REPEATED_KEY, CheckCode.TOO_LATE, CheckCode.UNFIT_SORT_KEY),
        *(CheckCode.NOT_OPTIONAL, CheckCode.NEEDLESS_HAS, CheckCode.UNKNOWN_FIELD),
        *(CheckCode.WEIGHT_RANGE, CheckCode.SAMPLE_RANGE),
    }
)
"""Errors that depend on their own statement only."""
_OF_DECLARATIONS: Final = _OF_STATEMENTS | {
    *(CheckCode.MAY_BE_MISSING, CheckCode.SHADOWING, CheckCode.NOT_HERE, CheckCode.UNTYPED_PARAM),
    *(CheckCode.WRITTEN_TWICE, CheckCode.MISPLACED, AnalysisCode.NO_VALUE, AnalysisCode.TEAM_OVERLAP),
    PlanCode.BACKOFF,
}
"""Errors that depend on their own rule only, or on those that they name."""
_LINE: Final = re.compile(r"^[ \t]*(\w*)", re.MULTILINE)
_NAMING: Final = re.compile(r"\s*(?:let|param)\s+(\w+)")
_LOOP: Final = re.compile(r"\s*for\b|\s*(?:let|param)\b(?!\s+\w)")
"""A `for`, or a `let` without a name: every later statement may use what it names."""
_WORD: Final = re.compile(r"\w+")


def damage(program: Program, broken: Sequence[Diagnostic]) -> Callable[[Span], bool]:
    """Return whether a place is in a declaration that has one of the `broken` texts."""
    files = _regions(program, broken)
    return lambda span: files[span.source.path].is_damaged(span.start)


def certain_errors(
    found: Iterable[Diagnostic], program: Program, broken: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    """Yield the errors in `found` that are certain; `broken` are those of the texts left out."""
    files = _regions(program, broken)
    # A function may be declared in a file that is not there as a whole, or is in YAML.
    is_there = all(
        each.span is not None and each.span.source.path in files and not is_twin(each.span.source.path)
        for each in broken
    )
    for each in found:
        if each.span is None:
            continue
        certain = files[each.span.source.path].certain_at(each.span.start)
        if each.code == AnalysisCode.TEAM_OVERLAP:
            # It is about two teams.
            for other in each.secondary:
                certain &= files[other.span.source.path].certain_at(other.span.start)
        is_unknown = each.code == CheckCode.UNKNOWN_FUNCTION and bool(certain)
        if each.code in certain or (is_unknown and is_there and not _may_declare(program, each.span.text)):
            yield each


def _may_declare(program: Program, name: str) -> bool:
    """Return whether a line of the program may be the head of a function, even one that could not be read.

    A name with a prefix depends on an import.
    """
    if not name.isidentifier():
        return True
    head = re.compile(rf"^[ \t]*(?:\w+[ \t]+)?(\w+)[ \t]+{name}\b", re.MULTILINE)
    texts = (file.span.source.text for file in program.files)
    words = (line[1] for text in texts for line in head.finditer(text))
    return any(TERMINAL_OF_STARTER.get(word) not in STATEMENT_STARTERS for word in words)


def _regions(program: Program, broken: Sequence[Diagnostic]) -> dict[str, _Regions]:
    return {file.span.source.path: _Regions(file, broken) for file in program.files}


class _Regions:
    """The declarations and statements of a file, by where they start, and those with a broken text."""

    def __init__(self, file: File, broken: Iterable[Diagnostic]) -> None:
        source = file.span.source
        errors = [each for each in broken if each.span is not None and each.span.source.path == source.path]
        places = [each.span.start for each in errors if each.span is not None]
        # A misspelled word begins a statement, too: the one before it is whole.
        words = [each for each in errors if each.fixes and each.code == LangCode.UNKNOWN_KEYWORD]
        misspelled = (each.span.start for each in words if each.span is not None)
        self._declarations = [each.span.start for each in file.declarations]
        self._statements = sorted((*misspelled, *_statements(source)))
        self._damaged = {bisect(self._declarations, place) for place in places}
        self._unsure = {bisect(self._statements, place) for place in places}
        for at in sorted(self._unsure):
            self._unsure.update(self._followers(source.text, at) if at else ())

    def _followers(self, text: str, broken: int) -> Iterator[int]:
        """Yield the statements of the rule after a broken one that use the value which it names.

        A broken value has an unknown type, and so have the values that are made of it.
        """
        starts = (*self._statements, len(text))
        end = bisect(self._statements, self._end(starts[broken - 1]))
        if _LOOP.match(text, starts[broken - 1]):
            yield from range(broken, end)
        unknown = {name[1] for name in (_NAMING.match(text, starts[broken - 1]),) if name}
        for at in range(broken + 1, end + 1) if unknown else ():
            if not unknown.isdisjoint(_WORD.findall(text, starts[at - 1], starts[at])):
                yield at
                if named := _NAMING.match(text, starts[at - 1]):
                    unknown.add(named[1])

    def _end(self, place: int) -> float:
        after = bisect(self._declarations, place)
        return self._declarations[after] if after < len(self._declarations) else inf

    def is_damaged(self, place: int) -> bool:
        """Return whether the declaration at a place has a broken text."""
        return bisect(self._declarations, place) in self._damaged

    def certain_at(self, place: int) -> frozenset[StrEnum]:
        """Return the errors that are certain at a place."""
        if not self.is_damaged(place):
            return _OF_DECLARATIONS
        return frozenset() if bisect(self._statements, place) in self._unsure else _OF_STATEMENTS


def _statements(source: Source) -> Iterator[int]:
    """Yield where statements may start: in YAML at each line, where expressions are whole or left out."""
    for line in _LINE.finditer(source.text):
        if is_twin(source.path) or line[1] in TERMINAL_OF_STARTER:
            yield line.start()

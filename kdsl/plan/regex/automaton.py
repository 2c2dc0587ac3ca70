"""Patterns as automata: Thompson's construction, made deterministic state by state as texts are read.

Whether there is a match costs one dictionary look-up per character once the states are known, and is linear
in the text always. The states of one pattern are bounded and thrown away when there are too many; a running
search keeps those it needs. Where the match is takes the steps in order of preference: `finder` does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache

from kdsl.plan.regex import charset
from kdsl.plan.regex.charset import Ranges
from kdsl.plan.regex.syntax import Assert, Chars, Choice, Place, RegexError, Repeat, Sequence, Tree, parse

MAX_PROGRAM = 10_000
"""The most instructions a pattern may become."""
MAX_TRANSITIONS = 10_000
"""The most transitions that are remembered for one pattern."""


@dataclass(slots=True)
class Step:
    """One instruction: match a character of `ranges`, pass `place`, or go on freely; then continue at
    `targets`, the preferred one first.

    The one without targets is the end of the pattern.
    """

    ranges: Ranges | None = None
    place: Place | None = None
    targets: tuple[int, ...] = ()


class Side(IntEnum):
    """What stands on one side of a place in the text."""

    NOTHING = 0
    NEWLINE = 1
    WORD = 2
    OTHER = 3


@dataclass(slots=True, eq=False)
class _State:
    """The steps that may come next, and the side read last. `after` caches where a character leads."""

    steps: frozenset[int]
    before: Side
    after: dict[str, _State | None] = field(default_factory=dict)


class Regex:
    """A compiled pattern, usable from several threads; `transitions` counts what it remembers.

    `program` are its steps, `start` the first of them.
    """

    def __init__(self, pattern: str) -> None:
        self.program: list[Step] = [Step()]
        self.start = self._emit(parse(pattern), 0)
        self._reset()

    def _reset(self) -> None:
        self.transitions = 0
        self._states: dict[tuple[frozenset[int], Side], _State] = {}
        self._initial = self._state(frozenset((self.start,)), Side.NOTHING)

    def search(self, text: str) -> bool:
        """Tell whether some part of `text` matches."""
        state = self._initial
        for char in text:
            try:
                following = state.after[char]
            except KeyError:
                following = self._advance(state, char)
            if following is None:
                return True
            state = following
        return self._closure(state, Side.NOTHING) is None

    def _advance(self, state: _State, char: str) -> _State | None:
        """Return where `char` leads from `state`; None where the pattern matched before it."""
        if self.transitions >= MAX_TRANSITIONS:
            self._reset()
        self.transitions += 1
        side = side_of(char)
        steps = self._closure(state, side)
        following = None
        if steps is not None:
            code = ord(char)
            reached = {self.start}
            for index in steps:
                step = self.program[index]
                if step.ranges is not None and charset.contains(step.ranges, code):
                    reached.add(step.targets[0])
            following = self._state(frozenset(reached), side)
        state.after[char] = following
        return following

    def _state(self, steps: frozenset[int], before: Side) -> _State:
        return self._states.setdefault((steps, before), _State(steps, before))

    def _closure(self, state: _State, after: Side) -> set[int] | None:
        """Return every step reached without reading; None where the end of the pattern is among them."""
        seen = set(state.steps)
        open_steps = list(seen)
        while open_steps:
            step = self.program[open_steps.pop()]
            if not step.targets:
                return None
            if step.ranges is not None or (
                step.place is not None and not holds(step.place, state.before, after)
            ):
                continue
            for target in step.targets:
                if target not in seen:
                    seen.add(target)
                    open_steps.append(target)
        return seen

    # ---- construction: every `_emit` returns the entry of a piece that continues at `target` ---------------

    def _add(self, step: Step) -> int:
        if len(self.program) >= MAX_PROGRAM:
            raise RegexError(f"the pattern needs more than {MAX_PROGRAM} states")
        self.program.append(step)
        return len(self.program) - 1

    def _emit(self, tree: Tree, target: int) -> int:
        match tree:
            case Chars(ranges=ranges):
                return self._add(Step(ranges=ranges, targets=(target,)))
            case Assert(place=place):
                return self._add(Step(place=place, targets=(target,)))
            case Sequence(items=items):
                for item in reversed(items):
                    target = self._emit(item, target)
                return target
            case Choice(options=options):
                entries = tuple(self._emit(option, target) for option in options)
                return self._add(Step(targets=entries))
            case Repeat(item=item, low=low, high=high, lazy=lazy):
                return self._emit_repeat(item, low, high, lazy, target)

    def _emit_repeat(self, item: Tree, low: int, high: int | None, lazy: bool, target: int) -> int:
        def either(entry: int) -> tuple[int, int]:
            return (target, entry) if lazy else (entry, target)

        if high is None:
            loop = self._add(Step(targets=(target,)))
            entry = self._emit(item, loop)
            self.program[loop].targets = either(entry)
            # One more copy for each further repetition; `x*` is `(x+)?`, `x+` is entered through its item:
            # the preferred match of an item that may be empty depends on it.
            target = self._add(Step(targets=either(entry))) if low == 0 else entry
            copies = low - 1
        else:
            for _ in range(high - low):
                entry = self._emit(item, target)
                if entry == target:
                    break
                target = self._add(Step(targets=either(entry)))
            copies = low
        for _ in range(copies):
            entry = self._emit(item, target)
            if entry == target:  # an item without instructions, such as `()`, repeats as nothing
                break
            target = entry
        return target


@lru_cache(maxsize=256)
def compile_regex(pattern: str) -> Regex:
    """Compile a pattern; RegexError where it is not one of RE2's or too large."""
    return Regex(pattern)


def side_of(char: str) -> Side:
    """Tell what a character is to the places beside it."""
    if char == "\n":
        return Side.NEWLINE
    return Side.WORD if char.isascii() and (char.isalnum() or char == "_") else Side.OTHER


def holds(place: Place, before: Side, after: Side) -> bool:
    """Tell whether a place with these sides is what the assertion asks for."""
    match place:
        case Place.TEXT_START:
            return before is Side.NOTHING
        case Place.TEXT_END:
            return after is Side.NOTHING
        case Place.LINE_START:
            return before in (Side.NOTHING, Side.NEWLINE)
        case Place.LINE_END:
            return after in (Side.NOTHING, Side.NEWLINE)
        case Place.WORD_EDGE:
            return (before is Side.WORD) != (after is Side.WORD)
        case Place.NO_WORD_EDGE:
            return (before is Side.WORD) == (after is Side.WORD)

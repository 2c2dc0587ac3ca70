"""Regular expressions: those of RE2, by its own library, each bounded in time and memory.

`matches`, `find` and `findAll` use it. RE2 never backtracks: a search takes the product of text and pattern
at most. That product, and what it takes to compile a pattern, is paid for before it is done; a pattern that
would be large is refused. No other module imports `re2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from weakref import WeakValueDictionary

MAX_COMPILE: Final = 20_000
"""The steps that compiling one pattern may take: about 10 ms."""
MAX_PROGRAM: Final = 10_000
"""The instructions of RE2 that one pattern may become; `\\pL` is 1,200."""
MAX_MEMORY: Final = 512 << 10
"""The bytes that RE2 may take for one pattern: its programs, and the states that searches lead to."""
RECENT: Final = 32
"""Of patterns that are made while rules run, so many are remembered."""
MAX_ALIVE: Final = 1_000
"""The patterns of one process, which are those of its rules and the recent ones: 500 MiB at the very most."""
PAIRS: Final = 64
"""A search takes a step for so many pairs of a byte of the text and an instruction of the pattern: with every
instruction at work on every byte that is about 0.5 µs.
"""

# What these take more than other characters of a pattern: tables of Unicode, copies of what repeats.
_COMPILE: Final = {r"\p": 500, r"\P": 500, "{": 200}
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)

Spend = Callable[[int], None]
"""Takes steps before they are done; EvalError where that is too much."""


class PatternError(Exception):
    """A text is no pattern, or one that would be too large. The message is lower case and names the cause."""


class _Found(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Compiled(Protocol):
    """The part of a compiled pattern of `re2` that is used here; offsets in bytes."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes, pos: int) -> _Found | None: ...


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Pattern:
    """A compiled pattern, usable from several threads. `size` counts its instructions."""

    size: int
    _compiled: _Compiled

    def matches(self, text: str, spend: Spend) -> bool:
        """Tell whether some part of `text` matches."""
        return self._first(_encoded(text), 0, spend) is not None

    def find(self, text: str, spend: Spend) -> str:
        """Return the leftmost match, of those the one that the pattern prefers; empty where none is."""
        return next(self.find_all(text, spend), "")

    def find_all(self, text: str, spend: Spend) -> Iterator[str]:
        """Yield the matches from left to right; as in Go, no empty one right behind another."""
        whole = _encoded(text)
        at, last_end = 0, -1
        while at <= len(whole) and (found := self._first(whole, at, spend)) is not None:
            start, end = found
            if end > start or start != last_end:
                yield whole[start:end].decode("utf-8", "surrogatepass")
            at = end if end > at else _after(whole, at)
            last_end = end

    def _first(self, text: bytes, at: int, spend: Spend) -> tuple[int, int] | None:
        # The smallest pattern has four instructions: going through the text is paid for as well.
        spend(1 + (len(text) - at) * self.size // PAIRS)
        found = self._compiled.search(text, at)
        return None if found is None else found.span()


_alive: WeakValueDictionary[str, Pattern] = WeakValueDictionary()


def compile_pattern(text: str) -> Pattern:
    """Return a pattern, the same while it is in use; PatternError where RE2 or its size refuses it."""
    known = _alive.get(text)
    if known is not None:
        return known
    if len(_alive) >= MAX_ALIVE:
        raise PatternError(f"more than {MAX_ALIVE} patterns are in use")
    pattern = _compiled(text)
    if isinstance(pattern, PatternError):
        raise PatternError(*pattern.args)
    return pattern


def compile_steps(text: str) -> int:
    """Return what it takes to compile a pattern, or to find that it is none."""
    return 2 * len(text) + sum(steps * text.count(part) for part, steps in _COMPILE.items())


@lru_cache(maxsize=RECENT)
def _compiled(text: str) -> Pattern | PatternError:
    steps = compile_steps(text)
    if steps > MAX_COMPILE:
        return PatternError(f"it would take more than {MAX_COMPILE} steps to compile")
    # A byte is no character: a match could end within one. Go refuses it too.
    if any(escape[1] == "C" for escape in _ESCAPE.finditer(text)):
        return PatternError(r"invalid escape sequence: \C")
    try:
        compiled = _by_re2(text)
    except PatternError as error:
        return error
    if compiled.programsize > MAX_PROGRAM:
        return _too_large()
    return _alive.setdefault(text, Pattern(compiled.programsize, compiled))


def _by_re2(text: str) -> _Compiled:
    # Here, as most rule files have no pattern: importing it takes as long as a small command.
    import re2

    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        compiled: _Compiled = re2.compile(_encoded(text), options)
    except re2.error as error:
        message = error.args[0].decode("utf-8", "replace")
        raise _too_large() if message.startswith("pattern too large") else PatternError(message) from None
    # Its own cache would keep every pattern a second time.
    re2.purge()
    return compiled


def _too_large() -> PatternError:
    return PatternError(f"it would become more than {MAX_PROGRAM} instructions")


def _encoded(text: str) -> bytes:
    # A text that was read from JSON may hold half a surrogate pair: a character like others.
    return text.encode("utf-8", "surrogatepass")


def _after(text: bytes, at: int) -> int:
    """Return where the next character begins."""
    at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at

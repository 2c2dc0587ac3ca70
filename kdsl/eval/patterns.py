"""RE2's regular expressions, by its own library, each bounded in time and memory.

`matches`, `find` and `findAll` use them. RE2 never backtracks: a search takes at most the product of text and
pattern. That product, and the cost of compiling a pattern, is paid in advance; a large pattern is refused. No
other module imports `re2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from weakref import WeakValueDictionary

MAX_COMPILE: Final = 20_000
"""The most steps for compiling one pattern: about 10 ms."""
MAX_PROGRAM: Final = 10_000
r"""The most instructions of one pattern in RE2; `\pL` is 1,200."""
MAX_MEMORY: Final = 512 << 10
"""The most bytes of RE2 for one pattern: its programs, and the states of searches."""
RECENT: Final = 32
"""The most patterns compiled at run time that are kept."""
MAX_ALIVE: Final = 1_000
"""The most patterns of one process, from its rules and recent ones: 500 MiB at the very most."""
PAIRS: Final = 64
"""The pairs of text byte and pattern instruction per step: at most about 0.5 µs."""

# The extra steps of some characters of a pattern: tables of Unicode, copies of repeated parts.
_COMPILE: Final = {r"\p": 500, r"\P": 500, "{": 200}
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)

Spend = Callable[[int], None]
"""Takes steps in advance; EvalError if there are too few."""


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
        """Return whether some part of `text` matches."""
        return self._first(_encoded(text), 0, spend) is not None

    def find(self, text: str, spend: Spend) -> str:
        """Return the leftmost match that the pattern prefers; empty if there is none."""
        return next(self.find_all(text, spend), "")

    def find_all(self, text: str, spend: Spend) -> Iterator[str]:
        """Yield the matches from left to right; as in Go, no empty one right after another."""
        whole = _encoded(text)
        at, last_end = 0, -1
        while at <= len(whole) and (found := self._first(whole, at, spend)) is not None:
            start, end = found
            if end > start or start != last_end:
                yield whole[start:end].decode("utf-8", "surrogatepass")
            at = end if end > at else _after(whole, at)
            last_end = end

    def _first(self, text: bytes, at: int, spend: Spend) -> tuple[int, int] | None:
        # The smallest pattern has four instructions, so visiting the text is paid for as well.
        spend(1 + (len(text) - at) * self.size // PAIRS)
        found = self._compiled.search(text, at)
        return None if found is None else found.span()


_alive: WeakValueDictionary[str, Pattern] = WeakValueDictionary()


def compile_pattern(text: str) -> Pattern:
    """Return a pattern, shared while it is in use; PatternError if RE2 or its size refuses it."""
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
    """Return the steps to compile a pattern, or to refuse it."""
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
    # Imported here, since few rule files have patterns and the import takes as long as a small command.
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
    # The cache of `re2` would keep every pattern a second time.
    re2.purge()
    return compiled


def _too_large() -> PatternError:
    return PatternError(f"it would become more than {MAX_PROGRAM} instructions")


def _encoded(text: str) -> bytes:
    # A text from JSON may hold half a surrogate pair: a character like others.
    return text.encode("utf-8", "surrogatepass")


def _after(text: bytes, at: int) -> int:
    """Return the position of the next character."""
    at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at

"""RE2's syntax to a tree. `parse` raises `RegexError` for what RE2 refuses: look-around, back-references,
`a**`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from kdsl.plan.regex import charset
from kdsl.plan.regex.charset import Ranges

MAX_REPEAT = 1000
MAX_DEPTH = 200
"""Groups inside groups, at most."""


class RegexError(ValueError):
    """The pattern is not one of RE2's; the text says why."""


class Place(Enum):
    """What an assertion asks of the place between two characters."""

    TEXT_START = auto()
    TEXT_END = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_EDGE = auto()
    NO_WORD_EDGE = auto()


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Assert:
    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least `low` times, at most `high` times where it is not None; as few as will do where `lazy`."""

    item: Tree
    low: int
    high: int | None
    lazy: bool = False


Tree = Chars | Assert | Sequence | Choice | Repeat

_DIGIT = charset.of("09")
_SPACE = charset.of("\t\n", "\f\r", "  ")
_WORD = charset.of("09", "AZ", "__", "az")
_PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_PERL |= {name.upper(): charset.negate(ranges) for name, ranges in _PERL.items()}
_POSIX = {
    "alnum": charset.of("09", "AZ", "az"),
    "alpha": charset.of("AZ", "az"),
    "ascii": charset.of("\0\x7f"),
    "blank": charset.of("\t\t", "  "),
    "cntrl": charset.of("\0\x1f", "\x7f\x7f"),
    "digit": _DIGIT,
    "graph": charset.of("!~"),
    "lower": charset.of("az"),
    "print": charset.of(" ~"),
    "punct": charset.of("!/", ":@", "[`", "{~"),
    "space": charset.of("\t\r", "  "),
    "upper": charset.of("AZ"),
    "word": _WORD,
    "xdigit": charset.of("09", "AF", "af"),
}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NO_NEWLINE = charset.negate(charset.of("\n\n"))
_OCTAL = frozenset("01234567")
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multi: bool = False
    dot_all: bool = False


_FLAG_FIELDS = {"i": "fold", "m": "multi", "s": "dot_all"}


def parse(pattern: str) -> Tree:
    """Return the tree of a pattern."""
    parser = _Parser(pattern)
    tree, _ = parser.choice(_Flags(), 0)
    if parser.at < len(pattern):
        raise RegexError("unexpected )")
    return tree


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def _peek(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def _take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _next(self, what: str) -> str:
        char = self._peek()
        if not char:
            raise RegexError(f"missing {what}")
        self.at += 1
        return char

    # ---- structure -----------------------------------------------------------------------------------------

    def choice(self, flags: _Flags, depth: int) -> tuple[Tree, _Flags]:
        """Parse up to the `)` that closes the group or to the end; return the flags set in it."""
        if depth > MAX_DEPTH:
            raise RegexError(f"more than {MAX_DEPTH} groups inside each other")
        options: list[Tree] = []
        items: list[Tree] = []
        while self._peek() not in ("", ")"):
            if self._take("|"):
                options.append(Sequence(tuple(items)))
                items = []
            elif self._peek(2) == "(?" and (changed := self._flag_group(flags)) is not None:
                flags = changed
            elif self._take(r"\Q"):
                end = self.pattern.find(r"\E", self.at)
                text = self.pattern[self.at : end if end >= 0 else None]
                self.at += len(text) + (2 if end >= 0 else 0)
                items += [_chars(charset.of(char * 2), flags) for char in text]
                if items:
                    items[-1] = self._repeated(items[-1])
            else:
                items.append(self._repeated(self._atom(flags, depth)))
        options.append(Sequence(tuple(items)))
        return (options[0] if len(options) == 1 else Choice(tuple(options))), flags

    def _flag_group(self, flags: _Flags) -> _Flags | None:
        """Parse `(?i-s)` and return the flags from there on; None, nothing consumed, where it is another
        group.
        """
        start = self.at
        self.at += 2
        changed = self._flags(flags)
        if changed is not None and self._take(")"):
            return changed
        self.at = start
        return None

    def _flags(self, flags: _Flags) -> _Flags | None:
        value, seen = True, False
        while self._peek() and self._peek() not in ":)":
            char = self._next("flag")
            if char == "-" and value:
                value, seen = False, False
                continue
            if char in _FLAG_FIELDS:
                flags = replace(flags, **{_FLAG_FIELDS[char]: value})
            elif char != "U":
                return None
            seen = True
        return flags if seen or value else None

    def _atom(self, flags: _Flags, depth: int) -> Tree:
        char = self._next("expression")
        match char:
            case "(":
                return self._group(flags, depth)
            case "[":
                return _chars(self._char_class(flags), flags)
            case ".":
                return Chars(charset.ANY if flags.dot_all else _NO_NEWLINE)
            case "^":
                return Assert(Place.LINE_START if flags.multi else Place.TEXT_START)
            case "$":
                return Assert(Place.LINE_END if flags.multi else Place.TEXT_END)
            case "*" | "+" | "?":
                raise RegexError(f"missing argument to repetition operator: {char}")
            case "\\":
                return self._escape(flags)
        return _chars(charset.of(char * 2), flags)

    def _group(self, flags: _Flags, depth: int) -> Tree:
        if self._take("?"):
            if self._take("P<") or (
                self._peek() == "<" and self._peek(2) not in ("<=", "<!") and self._take("<")
            ):
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at : end]
                if end < 0 or not name.isidentifier() or not name.isascii():
                    raise RegexError("invalid named group")
                self.at = end + 1
            else:
                start = self.at
                inner = self._flags(flags)
                if inner is None or not self._take(":"):
                    raise RegexError(f"invalid or unsupported syntax: (?{self.pattern[start : start + 2]}")
                flags = inner
        tree, _ = self.choice(flags, depth + 1)
        if not self._take(")"):
            raise RegexError("missing )")
        return tree

    # ---- repetition ----------------------------------------------------------------------------------------

    def _repeated(self, item: Tree) -> Tree:
        bounds = self._bounds()
        if bounds is None:
            return item
        lazy = self._take("?")
        start = self.at
        if self._bounds() is not None:
            raise RegexError(f"invalid nested repetition operator: {self.pattern[start : self.at]}")
        return Repeat(item, *bounds, lazy=lazy)

    def _bounds(self) -> tuple[int, int | None] | None:
        """Parse a repetition operator; text such as `{,3}` or `{a` is not one."""
        for operator, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(operator):
                return bounds
        end = self.pattern.find("}", self.at)
        if self._peek() != "{" or end < 0:
            return None
        low, comma, high = self.pattern[self.at + 1 : end].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None
        least = int(low)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise RegexError(f"invalid repeat count: {self.pattern[self.at : end + 1]}")
        self.at = end + 1
        return least, most

    # ---- characters ----------------------------------------------------------------------------------------

    def _escape(self, flags: _Flags) -> Tree:
        char = self._peek()
        places = {"A": Place.TEXT_START, "z": Place.TEXT_END, "b": Place.WORD_EDGE, "B": Place.NO_WORD_EDGE}
        if char in places and char:
            self.at += 1
            return Assert(places[char])
        ranges = self._escaped_class()
        if ranges is None:
            ranges = charset.of(self._escaped_char() * 2)
        return _chars(ranges, flags)

    def _escaped_class(self) -> Ranges | None:
        """Parse what follows a backslash if it is a class: `d`, `W`, `pL`, `P{Lu}`."""
        char = self._peek()
        if char in _PERL:
            self.at += 1
            return _PERL[char]
        if char not in ("p", "P"):
            return None
        self.at += 1
        name = self._next("character class")
        if name == "{":
            end = self.pattern.find("}", self.at)
            if end < 0:
                raise RegexError("missing } of a character class")
            name, self.at = self.pattern[self.at : end], end + 1
        negated = (char == "P") != name.startswith("^")
        name = name.removeprefix("^")
        try:
            ranges = charset.ANY if name == "Any" else charset.category(name)
        except KeyError:
            raise RegexError(f"unknown character class: \\p{{{name}}} (scripts are not supported)") from None
        return charset.negate(ranges) if negated else ranges

    def _escaped_char(self) -> str:
        """Parse what follows a backslash as one character."""
        char = self._next("character after \\")
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self._hex()
        if char == "0" or (char in _OCTAL and self._peek() in _OCTAL and self._peek()):
            digits = char
            while len(digits) < 3 and self._peek() in _OCTAL and self._peek():
                digits += self._next("digit")
            return chr(int(digits, 8))
        if not char.isascii() or char.isalnum():
            raise RegexError(f"invalid or unsupported escape: \\{char}")
        return char

    def _hex(self) -> str:
        if self._take("{"):
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at : max(end, self.at)]
            self.at = end + 1
        else:
            digits = self._peek(2)
            self.at += 2
            if len(digits) < 2:
                digits = ""
        if not digits or len(digits) > 6 or set(digits) - _HEX or int(digits, 16) > charset.LAST:
            raise RegexError("invalid escape: \\x")
        return chr(int(digits, 16))

    def _char_class(self, flags: _Flags) -> Ranges:
        """Parse a bracketed class behind its `[`. Case is folded before it is negated."""
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            named = self._named_class()
            if named is not None:
                ranges += named
                continue
            low = self._class_char()
            high = low
            if self._peek() == "-" and self._peek(2) not in ("-", "-]"):
                self.at += 1
                high = self._class_char()
            if high < low:
                raise RegexError(f"invalid character class range: {low}-{high}")
            ranges.append((ord(low), ord(high)))
        self.at += 1
        joined = charset.union(ranges)
        if flags.fold:
            joined = charset.fold(joined)
        return charset.negate(joined) if negated else joined

    def _named_class(self) -> Ranges | None:
        if self._take("[:"):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at : max(end, self.at)]
            if name.removeprefix("^") not in _POSIX:
                raise RegexError(f"invalid character class: [:{name}:]")
            self.at = end + 2
            ranges = _POSIX[name.removeprefix("^")]
            return charset.negate(ranges) if name.startswith("^") else ranges
        if self._peek() == "\\":
            self.at += 1
            found = self._escaped_class()
            if found is None:
                self.at -= 1
            return found
        return None

    def _class_char(self) -> str:
        char = self._next("closing ]")
        return self._escaped_char() if char == "\\" else char


def _chars(ranges: Ranges, flags: _Flags) -> Chars:
    return Chars(charset.fold(ranges) if flags.fold else ranges)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") and len(text) <= 9

"""YAML as the API server reads it, in bounded memory and with all errors reported. `documents` uses it.

It uses libyaml's events instead of PyYAML's constructors, for four reasons: PyYAML turns times into objects
and `22:22` into 1342, it accepts duplicate keys, it recurses as deep as the text nests, and aliases can
expand one line into gigabytes. Scalars are resolved as `sigs.k8s.io/yaml` does: YAML 1.1 booleans, integers
in Go's notations, no times, keys are strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

import yaml

from kdsl.base.yaml_text import problem_of, yaml_events

MAX_DEPTH: Final = 100
MAX_ALIASED: Final = 100_000
"""The maximum number of values that aliases may add to one document."""
MAX_BROKEN: Final = 100
"""The number of broken documents after which the rest of the stream is skipped."""

_MERGE: Final = "<<"
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"], True),
    **dict.fromkeys(["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"], False),
    ".inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan"),
}  # fmt: skip
_NUMBER_START: Final = frozenset("+-.0123456789")
_BASES: Final = {"0b": 2, "0o": 8, "0x": 16}
_INTEGER: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_TAG: Final = "tag:yaml.org,2002:"
_DOCUMENT_BREAK: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)


class MistakeKind(StrEnum):
    """The reason why a document has a diagnostic."""

    SYNTAX = "syntax"
    DUPLICATE_KEY = "duplicate key"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class YamlMistake:
    """An error at `line` (from 1)."""

    line: int
    text: str
    kind: MistakeKind = MistakeKind.SYNTAX
    help: tuple[str, ...] = ()


@dataclass(slots=True)
class YamlDocument:
    """One document of a stream: its number (from 1), its value and its errors.

    The value is None after a `fatal` error, and for an empty document.
    """

    number: int
    value: object = None
    is_broken: bool = False
    mistakes: list[YamlMistake] = field(default_factory=list)

    def complain(
        self,
        line: int,
        text: str,
        kind: MistakeKind = MistakeKind.SYNTAX,
        *,
        help: tuple[str, ...] = (),
        fatal: bool = True,
    ) -> None:
        self.mistakes.append(YamlMistake(line, text, kind, help))
        if fatal:
            self.is_broken = True
            self.value = None


_Collection: TypeAlias = dict[str, object] | list[object]


@dataclass(slots=True)
class _Open:
    """A collection under construction. `weight` counts the values in it, with aliases expanded.

    `merges` are the values of `<<` with their lines.
    """

    value: _Collection
    anchor: str | None
    key: str | None = None
    has_key: bool = False
    weight: int = 1
    merges: list[tuple[object, int]] = field(default_factory=list)


def yaml_documents(text: str) -> Iterator[YamlDocument]:
    """Yield the documents of a YAML stream; after a syntax error continue at the next line `---`."""
    number, line = 0, 0
    for _ in range(MAX_BROKEN):
        reader = _Reader(text, number, line)
        for document in reader.documents():
            number = document.number
            yield document
        following = reader.broken_at is not None and _DOCUMENT_BREAK.search(text, reader.broken_at)
        if not following:
            return
        line += text.count("\n", 0, following.start())
        text = text[following.start() :]


class _Reader:
    """Builds documents from the events of one part of the text, which begins at line `line` of the file.

    It stops at the first broken document and sets `broken_at`: the parser's time grows with the square of the
    depth, so a hostile document must not be parsed any further.
    """

    def __init__(self, text: str, number: int, line: int) -> None:
        self._text = text
        self._line = line
        self._number = number
        self._document_line = 0
        self.broken_at: int | None = None

    def documents(self) -> Iterator[YamlDocument]:
        document = YamlDocument(self._number + 1)
        events = yaml_events(self._text)
        try:
            for event in events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._document_line = _line_of(event)
                    self._build(events, document)
                    yield document
                    document = YamlDocument(document.number + 1)
                if self.broken_at is not None:
                    return
        except yaml.YAMLError as error:
            yield self._broken(document, error)

    def _build(self, events: Iterator[yaml.Event], document: YamlDocument) -> None:
        """Build one document, without recursion: the open collections are on a list."""
        builder = _Builder(document, self._line)
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                return
            builder.take(event)
            if document.is_broken:
                self._stop_at(_line_of(event))
                return

    def _broken(self, document: YamlDocument, error: yaml.YAMLError) -> YamlDocument:
        found = problem_of(self._text, error)
        before = self._text[: found.at]
        if found.is_at_character:
            # The rest cannot be parsed, and the documents before it were not: libyaml reads ahead.
            self.broken_at = len(self._text)
            document.number += _ended_documents(before)
        else:
            self._stop_at(before.count("\n"))
        document.complain(self._line + found.line + 1, f"this is not YAML: {found.reason}", help=found.help)
        return document

    def _stop_at(self, line: int) -> None:
        # INVARIANT: the next part begins after the first line of this document: reading makes progress.
        self.broken_at = _line_start(self._text, max(line, self._document_line + 1))


class _Builder:
    """Builds the value of one document, event by event."""

    def __init__(self, document: YamlDocument, line: int) -> None:
        self._document = document
        self._first_line = line
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._aliased = 0
        self._line = line

    def take(self, event: yaml.Event) -> None:
        self._line = self._first_line + _line_of(event) + 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor or "")
        elif isinstance(event, yaml.MappingStartEvent):
            self._start({}, event.anchor)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._start([], event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.implicit[0]:
            value: object = resolve_plain(event.value)
            if event.value == _MERGE and event.anchor is None and self._wants_key():
                value = _MERGE_KEY
        elif event.tag is None or event.tag in (f"{_TAG}str", "!", f"{_TAG}binary"):
            value = event.value
        elif event.tag.startswith(_TAG):
            value = resolve_plain(event.value)
        else:
            self._document.complain(self._line, f"the tag `{event.tag}` means nothing here")
            return
        self._keep(value, 1, event.anchor)

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and not self._open[-1].has_key

    def _alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            self._document.complain(self._line, f"the alias `*{anchor}` names nothing that is complete here")
            return
        value, weight = self._anchors[anchor]
        self._aliased += weight
        if self._aliased > MAX_ALIASED:
            text = f"aliases bring more than {MAX_ALIASED} values into this document"
            self._document.complain(self._line, text, MistakeKind.TOO_LARGE)
            return
        self._keep(value, weight, None)

    def _start(self, value: _Collection, anchor: str | None) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._document.complain(
                self._line, f"nested deeper than {MAX_DEPTH} levels", MistakeKind.TOO_LARGE
            )
            return
        if self._wants_key():
            self._document.complain(self._line, "a key must be a string")
            return
        self._open.append(_Open(value, anchor))

    def _end(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            self._merge(done, done.value)
        self._keep(done.value, done.weight, done.anchor)

    def _merge(self, done: _Open, value: dict[str, object]) -> None:
        for source, line in done.merges:
            for one in source if isinstance(source, list) else [source]:
                if isinstance(one, dict):
                    for key, item in one.items():
                        value.setdefault(key, item)
                else:
                    self._document.complain(line, "`<<` merges mappings only")

    def _keep(self, value: object, weight: int, anchor: str | None) -> None:
        """Store a complete value in its parent: as a key, an entry, an item or the document itself."""
        if anchor is not None:
            self._anchors[anchor] = (value, weight)
        if not self._open:
            self._document.value = None if self._document.is_broken else value
            return
        parent = self._open[-1]
        parent.weight += weight
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif not parent.has_key:
            self._key(parent, value)
        elif parent.key is None:
            parent.merges.append((value, self._line))
            parent.has_key = False
        else:
            parent.value[parent.key] = value
            parent.has_key = False

    def _key(self, parent: _Open, value: object) -> None:
        parent.has_key = True
        if value is _MERGE_KEY:
            parent.key = None
            return
        if value is None or isinstance(value, dict | list):
            self._document.complain(self._line, "a key must be a string")
            return
        parent.key = value if isinstance(value, str) else _key_text(value)
        if parent.key in parent.value:
            self._document.complain(
                self._line, f"the key `{parent.key}` is there twice", MistakeKind.DUPLICATE_KEY, fatal=False
            )


_MERGE_KEY: Final = object()


def resolve_plain(text: str) -> object:
    """Return the value of an unquoted scalar: None, a bool, an int, a float or the text itself."""
    if text and text[0] in _NUMBER_START:
        return _resolve_number(text)
    return _WORDS.get(text, text)


def _resolve_number(text: str) -> object:
    if len(text) > 64:
        return text
    if _INTEGER.fullmatch(text):
        number = _integer(text.lstrip("+-").replace("_", ""))
        return -number if text[0] == "-" else number
    if _FLOAT.fullmatch(text):
        # A number beyond the doubles stays a text, as in Go's YAML.
        return text if math.isinf(float(text)) else float(text)
    return _WORDS.get(text, text)


def _integer(digits: str) -> int:
    """Parse digits in one of Go's notations: 0b101, 0o17, 017, 0x1f, 31."""
    base = _BASES.get(digits[:2])
    if base is not None:
        return int(digits[2:] or "0", base)
    return int(digits, 8 if digits[0] == "0" else 10)


def _ended_documents(text: str) -> int:
    """Return how many documents a `---` ends in the beginning of a stream; comments alone are none."""
    head, *others = _DOCUMENT_BREAK.split(text)
    has_content = any(line.strip() and line[0] not in "#%" for line in head.splitlines())
    return len(others) - (not has_content) if others else 0


def _line_of(event: yaml.Event) -> int:
    # INVARIANT: every event of a parser has a mark; only events for output have none.
    assert event.start_mark is not None
    return int(event.start_mark.line)


def _key_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _line_start(text: str, line: int) -> int:
    """Return the index of the start of `line`, counted from 0, or the length of the text."""
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
        if at == 0:
            return len(text)
    return at

"""YAML as a tree with the places of all values, for files people write for kdsl itself.

The configuration and the YAML twins of rule files are read through it. (Cluster objects have a reader of
their own, which reads as the API server does and keeps no places.) It works on libyaml's events, without
recursion and in bounded memory. Plain scalars follow YAML 1.2's core schema: `yes` and `22:22` are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

import yaml

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Source, Span
from kdsl.base.yaml_text import problem_of, yaml_events
from kdsl.lang.codes import LangCode

MAX_LENGTH: Final = 1 << 20
"""The largest number of characters of a text: the limit of a ConfigMap."""
MAX_BYTES: Final = 4 * MAX_LENGTH
"""The largest size of such a text in UTF-8."""
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 100_000
"""The largest number of values of a text, with those that aliases repeat counted again."""

_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_RULE_FILE: Final = re.compile(r"(?:\s++|//.*+)*+(?P<header>kdsl[ \t]+[0-9]+)[ \t]*(?:$|//)", re.MULTILINE)
_RULES: Final = "the name of a rule file ends in `.kdsl`; `--rules` passes it to a command"
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL: Final = re.compile(r"0o[0-7]+", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_MAX_DIGITS: Final = 64
"""Longer numbers stay text: Python's own conversion is quadratic and has its own limit."""
_ESCAPE_LENGTHS: Final = {"x": 4, "u": 6, "U": 10}


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A text and its style: empty for a plain scalar, or else `'`, `"`, `|` or `>`."""

    span: Span
    text: str
    style: str = ""

    @property
    def value(self) -> bool | int | float | str | None:
        """Return the value of the scalar."""
        return self.text if self.style else resolve_plain(self.text)

    def locator(self) -> Callable[[int, int], Span]:
        """Return a function from characters `start` to `end` of the text to their span in the file."""
        source, places = self.span.source, _places(self)

        def locate(start: int, end: int) -> Span:
            first = places[start]
            return Span(source, first, max(places[end - 1] + 1, first) if end > start else first)

        return locate


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """A mapping in the order of the file; of two equal keys it has the first."""

    span: Span
    entries: tuple[tuple[YamlScalar, YamlNode], ...]

    def entry(self, key: str) -> tuple[YamlScalar, YamlNode] | None:
        return next((entry for entry in self.entries if entry[0].text == key), None)

    def get(self, key: str) -> YamlNode | None:
        entry = self.entry(key)
        return entry[1] if entry else None


@dataclass(frozen=True, slots=True)
class YamlSequence:
    span: Span
    items: tuple[YamlNode, ...]


YamlNode = YamlScalar | YamlMapping | YamlSequence

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""The values of JSON."""


@dataclass(frozen=True, slots=True)
class YamlResult:
    """The documents of a text, without empty ones, and its diagnostics; with errors, the parts that could be
    read.
    """

    documents: tuple[YamlNode, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_readable(self) -> bool:
        """Return whether the documents are whole, but for repeated keys: of those the first counts."""
        return all(each.code == LangCode.YAML_DUPLICATE_KEY for each in self.diagnostics)


def read_yaml(source: Source) -> YamlResult:
    """Read a YAML text. Never raises: each error in it is a diagnostic."""
    if len(source.text) > MAX_LENGTH:
        title = f"`{source.path}` is too large: more than {MAX_LENGTH:,} characters"
        return YamlResult((), (Diagnostic(LangCode.YAML_TOO_LARGE, title, where=source.path),))
    if rules := _RULE_FILE.match(source.text):
        span = Span(source, *rules.span("header"))
        return YamlResult(
            (), (Diagnostic(LangCode.YAML_SYNTAX, "this is a rule file, not YAML", span, help=(_RULES,)),)
        )
    builder = _Builder(source)
    try:
        builder.read()
    except yaml.YAMLError as error:
        builder.diagnostics.append(_not_yaml(source, error))
    return YamlResult(tuple(builder.documents), tuple(builder.diagnostics))


def to_plain(node: YamlNode) -> Plain:
    """Return the value of a tree as JSON values."""
    match node:
        case YamlScalar():
            return node.value
        case YamlMapping(entries=entries):
            return {key.text: to_plain(value) for key, value in entries}
        case YamlSequence(items=items):
            return [to_plain(item) for item in items]


def resolve_plain(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar in the core schema of YAML 1.2 (section 10.3.2)."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MAX_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    # A double out of range would be infinite. Like Go's reader, leave it as text.
    return float(text) if _FLOAT.fullmatch(text) and isfinite(float(text)) else text


def is_number_out_of_range(text: str) -> bool:
    """Return whether a scalar is a number that is read as text: it has too many digits or is too large."""
    is_number = _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)
    return is_number is not None and isinstance(resolve_plain(text), str)


# ---- building ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A collection under construction. `weight` counts the values in it, aliases expanded."""

    start: int
    is_mapping: bool
    anchor: str | None
    is_flow: bool
    children: list[YamlNode] = field(default_factory=list)
    weight: int = 1


class _TooLarge(yaml.YAMLError):
    """Ends the reading; the diagnostic is recorded already."""


class _Builder:
    """The documents of one text, built event by event; the open collections are on a list."""

    def __init__(self, source: Source) -> None:
        self.documents: list[YamlNode] = []
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[YamlNode, int]] = {}
        self._values = 0

    def read(self) -> None:
        with suppress(_TooLarge):
            for event in yaml_events(self._source.text):
                self._take(event)

    def _take(self, event: yaml.Event) -> None:
        span = self._span(event)
        match event:
            case yaml.DocumentStartEvent():
                self._anchors.clear()
            case yaml.ScalarEvent():
                self._check_tag(event, span)
                self._count(1, span)
                # A block scalar ends at the next token; the blanks before that do not belong to it.
                end = span.start + len(span.text.rstrip()) if event.style in ("|", ">") else span.end
                place = Span(self._source, span.start, end)
                self._keep(YamlScalar(place, event.value, event.style or ""), 1, event.anchor)
            case yaml.AliasEvent():
                self._alias(event.anchor or "", span)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._start(event, span)
            case yaml.CollectionEndEvent():
                self._end(span)

    def _span(self, event: yaml.Event) -> Span:
        # INVARIANT: every event of a parser has marks; only events made for writing have none.
        assert event.start_mark is not None and event.end_mark is not None
        return Span(self._source, event.start_mark.index, event.end_mark.index)

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, span: Span) -> None:
        if event.tag not in (None, "!"):
            title = f"the tag `{event.tag}` means nothing here"
            self.diagnostics.append(Diagnostic(LangCode.YAML_FORM, title, span, help=("leave it out",)))

    def _alias(self, anchor: str, span: Span) -> None:
        if anchor not in self._anchors:
            title = f"the alias `*{anchor}` names nothing that is complete here"
            self.diagnostics.append(Diagnostic(LangCode.YAML_FORM, title, span))
            self._keep(YamlScalar(span, "", '"'), 1, None)
            return
        node, weight = self._anchors[anchor]
        self._count(weight, span)
        self._keep(node, weight, None)

    def _count(self, weight: int, span: Span) -> None:
        self._values += weight
        if self._values > MAX_VALUES:
            self._give_up(f"the text stands for more than {MAX_VALUES:,} values", span)

    def _start(self, event: yaml.CollectionStartEvent, span: Span) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._give_up(f"nested deeper than {MAX_DEPTH} levels", span)
        self._check_tag(event, span)
        self._count(1, span)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open(span.start, is_mapping, event.anchor, bool(event.flow_style)))

    def _end(self, span: Span) -> None:
        done = self._open.pop()
        # A block ends with its last value, not at the next token below it.
        last = done.children[-1].span.end if done.children else span.end
        end = span.end if done.is_flow else max(min(last, span.end), done.start)
        place = Span(self._source, done.start, end)
        if done.is_mapping:
            node: YamlNode = YamlMapping(place, tuple(self._entries(done.children)))
        else:
            node = YamlSequence(place, tuple(done.children))
        self._keep(node, done.weight, done.anchor)

    def _entries(self, children: list[YamlNode]) -> Iterator[tuple[YamlScalar, YamlNode]]:
        first: dict[str, YamlScalar] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            if not isinstance(key, YamlScalar):
                self.diagnostics.append(Diagnostic(LangCode.YAML_FORM, "a key must be text", key.span))
            elif key.text in first:
                title = f"the key `{key.text}` is there twice"
                earlier = (Label(first[key.text].span, "the first one is here"),)
                help_ = ("remove one of them",)
                self.diagnostics.append(
                    Diagnostic(LangCode.YAML_DUPLICATE_KEY, title, key.span, secondary=earlier, help=help_)
                )
            else:
                first[key.text] = key
                yield key, value

    def _keep(self, node: YamlNode, weight: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, weight)
        if self._open:
            self._open[-1].children.append(node)
            self._open[-1].weight += weight
        elif not (isinstance(node, YamlScalar) and node.value is None):
            self.documents.append(node)

    def _give_up(self, title: str, span: Span) -> None:
        self.diagnostics.append(Diagnostic(LangCode.YAML_TOO_LARGE, title, span))
        raise _TooLarge


def _not_yaml(source: Source, error: yaml.YAMLError) -> Diagnostic:
    found = problem_of(source.text, error)
    span = Span(source, found.at, min(found.at + 1, len(source.text)))
    return Diagnostic(LangCode.YAML_SYNTAX, f"this is not YAML: {found.reason}", span, help=found.help)


# ---- places inside scalars ---------------------------------------------------------------------------------


def _places(scalar: YamlScalar) -> list[int]:
    """Return the place of each character of a scalar's text in its source, and the end of the last one.

    Characters are matched in order. YAML adds blanks between them (indents, folded lines), a second quote in
    single quotes and escapes in double quotes.
    """
    source, end = scalar.span.source.text, scalar.span.end
    at = _content_start(scalar)
    places: list[int] = []
    for character in scalar.text:
        while scalar.style == '"' and source.startswith("\\\n", at):
            at = _skip_blanks(source, at + 2, end)
        if at < end and source[at] == "\\" and scalar.style == '"':
            places.append(at)
            at += _ESCAPE_LENGTHS.get(source[at + 1 : at + 2], 2)
            continue
        if at < end and source[at] != character and not character.isspace():
            at = _skip_blanks(source, at, end)
        places.append(min(at, end))
        if source[at : at + 1] == character:
            at += 2 if scalar.style == "'" and character == "'" else 1
        else:
            at = _skip_blanks(source, at, end)
    return [*places, min(at, end)]


def _content_start(scalar: YamlScalar) -> int:
    """Return the start of the content: behind the quote, or in the line below the `|` or `>`."""
    if scalar.style in ("|", ">"):
        header_end = scalar.span.source.text.find("\n", scalar.span.start, scalar.span.end)
        return scalar.span.end if header_end < 0 else header_end + 1
    return scalar.span.start + len(scalar.style)


def _skip_blanks(source: str, at: int, end: int) -> int:
    while at < end and source[at].isspace():
        at += 1
    return at

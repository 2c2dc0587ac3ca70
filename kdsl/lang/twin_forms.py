"""The YAML forms of the syntax tree's values: the pieces of `twin_table.py`.

Each form reads a value, writes it and describes it as JSON Schema, so that the three cannot disagree. Reading
collects every mistake: a form that cannot read a value reports the reason and raises `MisfitError`. The next
list or mapping around it catches that and continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final, Protocol

from kdsl.base.diagnostic import Diagnostic, Edit, Fix, did_you_mean
from kdsl.base.span import Span
from kdsl.lang import expression_tree, tree
from kdsl.lang.codes import LangCode
from kdsl.lang.expression_printer import expression_doc, format_expr
from kdsl.lang.layout import render
from kdsl.lang.literals import INT64_MAX
from kdsl.lang.parser import parse_embedded
from kdsl.lang.slips import RESERVED
from kdsl.lang.templates import cut_text, join_parts, read_parts
from kdsl.lang.yaml_tree import Plain, YamlMapping, YamlNode, YamlScalar, YamlSequence

WIDTH: Final = 90
"""The length limit of a line of an expression."""

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WORD_PATTERN: Final = rf"(?!({'|'.join(sorted(RESERVED))})(?![A-Za-z0-9_])){_WORD.pattern}"
Schema = dict[str, Plain]


class MisfitError(Exception):
    """A value does not fit its form; the diagnostics explain why."""


@dataclass(slots=True)
class Findings:
    """The diagnostics of one reading."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def refuse(
        self, code: LangCode, span: Span, title: str, *help_: str, fixes: tuple[Fix, ...] = ()
    ) -> MisfitError:
        """Report a mistake and return the exception to raise."""
        self.diagnostics.append(Diagnostic(code, title, span, help=help_, fixes=fixes))
        return MisfitError()


class Form(Protocol):
    """One kind of value in YAML."""

    def read(self, node: YamlNode, found: Findings) -> Any: ...
    def write(self, value: Any) -> Plain: ...
    def schema(self) -> Schema: ...


# ---- scalars -----------------------------------------------------------------------------------------------


def text_of(node: YamlNode, found: Findings, what: str) -> YamlScalar:
    """Return a scalar that is text, not a number, a truth value or null."""
    if not isinstance(node, YamlScalar):
        raise found.refuse(LangCode.TWIN_SHAPE, node.span, f"{what} is text, not {_shown(node)}")
    if isinstance(node.value, str):
        return node
    if node.value is None:
        raise found.refuse(LangCode.TWIN_SHAPE, node.span, f"{what} is missing")
    quoted = Fix("put it in quotes", (Edit(node.span, f'"{node.text}"'),))
    raise found.refuse(
        LangCode.TWIN_SHAPE, node.span, f"{what} is text; this is YAML's {node.text}", fixes=(quoted,)
    )


def _shown(node: YamlNode) -> str:
    match node:
        case YamlMapping():
            return "a mapping"
        case YamlSequence():
            return "a list"
    return "text"


class Expression:
    """A CEL expression, as text."""

    def read(self, node: YamlNode, found: Findings) -> expression_tree.Expr:
        scalar = text_of(node, found, "an expression")
        expr, diagnostics = parse_embedded(scalar.text, scalar.locator())
        found.diagnostics.extend(diagnostics)
        if expr is None:
            raise MisfitError
        return expr

    def write(self, value: expression_tree.Expr) -> str:
        return render(expression_doc(value), WIDTH)

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "description": "a CEL expression"}


class Reason:
    """A reason with `${expr}` holes, as text without quotes."""

    def read(self, node: YamlNode, found: Findings) -> tree.Template:
        scalar = text_of(node, found, "a reason")
        cut = cut_text(scalar.text, range(len(scalar.text) + 1))
        parts, diagnostics = read_parts(cut, scalar.locator(), parse_embedded)
        found.diagnostics.extend(diagnostics)
        if diagnostics:
            raise MisfitError
        return tree.Template(parts, "", span=scalar.span)

    def write(self, value: tree.Template) -> str:
        return join_parts(value.parts, format_expr)

    def schema(self) -> Schema:
        return {"type": "string", "description": "the text for the user; ${expr} stands for a value"}


@dataclass(frozen=True, slots=True)
class NameForm:
    """A name; with dots between its words where it is `qualified`."""

    qualified: bool = False

    def read(self, node: YamlNode, found: Findings) -> tree.Name:
        scalar = text_of(node, found, "a name")
        words = scalar.text.split(".") if self.qualified else [scalar.text]
        for word in words:
            if not _WORD.fullmatch(word) or word in RESERVED:
                kind = "a word that CEL reserves" if word in RESERVED else "no name"
                raise found.refuse(LangCode.TWIN_VALUE, scalar.span, f"`{word}` is {kind}")
        return tree.Name(scalar.text, span=scalar.span)

    def write(self, value: tree.Name) -> str:
        return value.text

    def schema(self) -> Schema:
        tail = rf"(\.{_WORD_PATTERN})*" if self.qualified else ""
        return {"type": "string", "pattern": f"^{_WORD_PATTERN}{tail}$"}


class TypeForm:
    """A written type: `map(string, int)`. It is spelled like a call, and read as one."""

    def read(self, node: YamlNode, found: Findings) -> tree.TypeName:
        scalar = text_of(node, found, "a type")
        expr, _ = parse_embedded(scalar.text, scalar.locator())
        type_name = None if expr is None else self._type(expr)
        if type_name is None:
            title = f"`{scalar.text}` is no type"
            raise found.refuse(LangCode.TWIN_VALUE, scalar.span, title, "types look like `map(string, int)`")
        return type_name

    def _type(self, expr: expression_tree.Expr) -> tree.TypeName | None:
        match expr:
            case expression_tree.Ident(name, rooted=False):
                return tree.TypeName(name, span=expr.span)
            case expression_tree.Call(name, None, [_, *_] as args, rooted=False):
                inner = [self._type(arg) for arg in args]
                known = tuple(arg for arg in inner if arg is not None)
                return tree.TypeName(name, known, span=expr.span) if len(known) == len(inner) else None
        return None

    def write(self, value: tree.TypeName) -> str:
        args = ", ".join(self.write(arg) for arg in value.args)
        return f"{value.name}({args})" if args else value.name

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "description": "a type, such as map(string, int)"}


class Text:
    """A string literal, as text without quotes."""

    def read(self, node: YamlNode, found: Findings) -> expression_tree.Literal:
        scalar = text_of(node, found, "this")
        return expression_tree.Literal(expression_tree.LiteralKind.STRING, scalar.text, "", span=scalar.span)

    def write(self, value: expression_tree.Literal) -> str:
        return str(value.value)

    def schema(self) -> Schema:
        return {"type": "string"}


class Doc:
    """The lines of a documentation comment, as one text."""

    def read(self, node: YamlNode, found: Findings) -> tuple[str, ...]:
        return tuple(line.rstrip() for line in text_of(node, found, "documentation").text.split("\n"))

    def write(self, value: tuple[str, ...]) -> str:
        return "\n".join(value)

    def schema(self) -> Schema:
        return {"type": "string"}


class Integer:
    """A whole number from 0 to the largest int64."""

    def read(self, node: YamlNode, found: Findings) -> int:
        value = node.value if isinstance(node, YamlScalar) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT64_MAX:
            title = "this must be a whole number, 0 or more"
            raise found.refuse(LangCode.TWIN_VALUE, node.span, title)
        return value

    def write(self, value: int) -> int:
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": 0, "maximum": INT64_MAX}


class NumberForm:
    """A whole number with its place."""

    def read(self, node: YamlNode, found: Findings) -> tree.Number:
        return tree.Number(Integer().read(node, found), span=node.span)

    def write(self, value: tree.Number) -> int:
        return value.value

    def schema(self) -> Schema:
        return Integer().schema()


class Flag:
    """`true` or `false`."""

    def read(self, node: YamlNode, found: Findings) -> bool:
        value = node.value if isinstance(node, YamlScalar) else None
        if not isinstance(value, bool):
            raise found.refuse(LangCode.TWIN_VALUE, node.span, "this must be `true` or `false`")
        return value

    def write(self, value: bool) -> bool:
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several words, each of which stands for a value."""

    words: Mapping[str, Any]

    def read(self, node: YamlNode, found: Findings) -> Any:
        scalar = text_of(node, found, "this")
        if scalar.text not in self.words:
            known = ", ".join(f"`{word}`" for word in self.words)
            help_ = did_you_mean(scalar.text, self.words)
            raise found.refuse(LangCode.TWIN_VALUE, scalar.span, f"this must be one of {known}", *help_)
        return self.words[scalar.text]

    def write(self, value: Any) -> str:
        return next(word for word, known in self.words.items() if known == value)

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


def member_of(kind: type[StrEnum]) -> OneOf:
    """Return the form of a closed set of words."""
    return OneOf({str(member): member for member in kind})


@dataclass(frozen=True, slots=True)
class Many:
    """A list of values. Items of a `block` are statements: those with a mistake are left out, as the parser
    of rule files does, so that the others are still checked.
    """

    item: Form
    least: int = 0
    most: int | None = None
    block: bool = False

    def read(self, node: YamlNode, found: Findings) -> tuple[Any, ...]:
        if not isinstance(node, YamlSequence):
            raise found.refuse(LangCode.TWIN_SHAPE, node.span, f"this must be a list, not {_shown(node)}")
        if len(node.items) < self.least or (self.most is not None and len(node.items) > self.most):
            bounds = f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"
            raise found.refuse(LangCode.TWIN_VALUE, node.span, f"this list must hold {bounds} items")
        readings = [partial(self.item.read, item, found) for item in node.items]
        return tuple(_read_sound(readings) if self.block else read_all(readings))

    def write(self, value: Sequence[Any]) -> Plain:
        return [self.item.write(item) for item in value]

    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema()}
        if self.least:
            schema["minItems"] = self.least
        if self.most is not None:
            schema["maxItems"] = self.most
        return schema


def read_all(readings: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all readings, so that the mistakes of each are found; raises MisfitError if one failed."""
    values = _read_sound(readings)
    if len(values) < len(readings):
        raise MisfitError
    return values


def _read_sound(readings: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run all readings and return the values of those without a mistake."""
    values: list[Any] = []
    for reading in readings:
        with suppress(MisfitError):
            values.append(reading())
    return values

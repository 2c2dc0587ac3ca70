"""The YAML forms of the syntax tree's classes: mappings, and the statements of a block.

`twin_table.py` has the keys and classes; `twin_forms.py` the forms of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kdsl.base.diagnostic import did_you_mean
from kdsl.lang import tree
from kdsl.lang.codes import LangCode
from kdsl.lang.twin_forms import Findings, Form, MisfitError, OneOf, Schema, read_all
from kdsl.lang.yaml_tree import Plain, YamlMapping, YamlNode, YamlScalar

_REQUIRED: Any = object()


class Part(Protocol):
    """A part of a mapping, under one key or more: it holds attributes of a node."""

    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def required(self) -> tuple[str, ...]: ...
    @property
    def attributes(self) -> tuple[str, ...]: ...
    def read(self, node: YamlMapping, found: Findings) -> dict[str, Any]: ...
    def write(self, value: Any) -> dict[str, Plain]: ...
    def properties(self) -> dict[str, Plain]: ...


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute under one key. The key may be absent if there is a `default`, and is absent for that
    value.
    """

    key: str
    attribute: str
    form: Form
    default: Any = _REQUIRED

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def required(self) -> tuple[str, ...]:
        return (self.key,) if self.default is _REQUIRED else ()

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def read(self, node: YamlMapping, found: Findings) -> dict[str, Any]:
        value = node.get(self.key)
        return {self.attribute: self.default if value is None else self.form.read(value, found)}

    def write(self, value: Any) -> dict[str, Plain]:
        attribute = getattr(value, self.attribute)
        is_default = self.default is not _REQUIRED and attribute == self.default
        return {} if is_default else {self.key: self.form.write(attribute)}

    def properties(self) -> dict[str, Plain]:
        return {self.key: self.form.schema()}


@dataclass(frozen=True, slots=True)
class Group:
    """Several attributes in a nested mapping under one key."""

    key: str
    parts: tuple[Part, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def required(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(attribute for part in self.parts for attribute in part.attributes)

    def read(self, node: YamlMapping, found: Findings) -> dict[str, Any]:
        value = node.get(self.key)
        # INVARIANT: `read_parts_of` calls this only where all required keys are there.
        assert value is not None
        return read_parts_of(value, self.parts, found)

    def write(self, value: Any) -> dict[str, Plain]:
        return {self.key: write_parts_of(value, self.parts)}

    def properties(self) -> dict[str, Plain]:
        return {self.key: schema_of(self.parts)}


@dataclass(frozen=True, slots=True)
class Either:
    """At most one of several keys, which holds two attributes: the key itself, and its value."""

    words: Mapping[str, Any]
    which: str
    attribute: str
    form: Form

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.words)

    @property
    def required(self) -> tuple[str, ...]:
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.which, self.attribute)

    def read(self, node: YamlMapping, found: Findings) -> dict[str, Any]:
        entries = [(key, value) for key, value in node.entries if key.text in self.words]
        for key, _ in entries[1:]:
            names = " and ".join(f"`{word}`" for word in self.words)
            raise found.refuse(LangCode.TWIN_KEY, key.span, f"{names} exclude each other")
        for key, value in entries:
            return {self.which: self.words[key.text], self.attribute: self.form.read(value, found)}
        return {self.which: None, self.attribute: None}

    def write(self, value: Any) -> dict[str, Plain]:
        which = getattr(value, self.which)
        if which is None:
            return {}
        return {OneOf(self.words).write(which): self.form.write(getattr(value, self.attribute))}

    def properties(self) -> dict[str, Plain]:
        return {word: self.form.schema() for word in self.words}


def read_parts_of(node: YamlNode, parts: Iterable[Part], found: Findings) -> dict[str, Any]:
    """Read a mapping of these parts; report unknown and missing keys with the mistakes in its values."""
    parts = tuple(parts)
    if not isinstance(node, YamlMapping):
        known = ", ".join(f"`{key}`" for part in parts for key in part.keys)
        raise found.refuse(LangCode.TWIN_SHAPE, node.span, f"this must be a mapping with {known}")
    is_sound = _check_keys(node, parts, found)
    whole = [part for part in parts if all(node.get(key) is not None for key in part.required)]
    read = read_all([partial(part.read, node, found) for part in whole])
    if not is_sound or len(whole) < len(parts):
        raise MisfitError
    return {name: value for attributes in read for name, value in attributes.items()}


def _check_keys(node: YamlMapping, parts: tuple[Part, ...], found: Findings) -> bool:
    before = len(found.diagnostics)
    known = [key for part in parts for key in part.keys]
    for key, _ in node.entries:
        if key.text not in known:
            help_ = did_you_mean(key.text, known) or (f"keys here: {', '.join(known)}",)
            found.refuse(LangCode.TWIN_KEY, key.span, f"unknown key `{key.text}`", *help_)
    place = node.entries[0][0].span if node.entries else node.span
    for key_text in (key for part in parts for key in part.required):
        if node.get(key_text) is None:
            found.refuse(LangCode.TWIN_MISSING, place, f"the key `{key_text}` is missing here")
    return len(found.diagnostics) == before


def write_parts_of(value: Any, parts: Iterable[Part]) -> dict[str, Plain]:
    return {key: plain for part in parts for key, plain in part.write(value).items()}


def schema_of(parts: Iterable[Part]) -> Schema:
    """Return the schema of a mapping of these parts."""
    parts = tuple(parts)
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key: value for part in parts for key, value in part.properties().items()},
    }
    required: list[Plain] = [key for part in parts for key in part.required]
    if required:
        schema["required"] = required
    exclusive = [part for part in parts if isinstance(part, Either)]
    for part in exclusive:
        schema["not"] = {"required": list(part.words)}
    return schema


# ---- classes of the tree -----------------------------------------------------------------------------------


class RecordShape(Form, Protocol):
    """The form of one class of the tree."""

    @property
    def make(self) -> Callable[..., Any]: ...


@dataclass(frozen=True, slots=True)
class Sole:
    """A node with one attribute, written as the attribute alone."""

    make: Callable[..., Any]
    attribute: str
    form: Form

    def read(self, node: YamlNode, found: Findings) -> Any:
        return self.make(**{self.attribute: self.form.read(node, found)}, span=node.span)

    def write(self, value: Any) -> Plain:
        return self.form.write(getattr(value, self.attribute))

    def schema(self) -> Schema:
        return self.form.schema()


@dataclass(frozen=True, slots=True)
class Record:
    """A node written as a mapping."""

    make: Callable[..., Any]
    parts: tuple[Part, ...]

    def read(self, node: YamlNode, found: Findings) -> Any:
        return self.make(**read_parts_of(node, self.parts, found), span=node.span)

    def write(self, value: Any) -> Plain:
        return write_parts_of(value, self.parts)

    def schema(self) -> Schema:
        return schema_of(self.parts)


@dataclass(frozen=True, slots=True)
class WordOr:
    """A node written as one of several words, or as a mapping with a part that only the value `full` has."""

    make: Callable[..., Any]
    attribute: str
    words: Mapping[str, Any]
    full: Any
    part: Part

    def read(self, node: YamlNode, found: Findings) -> Any:
        if isinstance(node, YamlScalar):
            word = OneOf(self.words).read(node, found)
            lacking = dict.fromkeys(self.part.attributes)
            return self.make(**{self.attribute: word}, **lacking, span=node.span)
        return self.make(
            **{self.attribute: self.full}, **read_parts_of(node, (self.part,), found), span=node.span
        )

    def write(self, value: Any) -> Plain:
        which = getattr(value, self.attribute)
        return write_parts_of(value, (self.part,)) if which == self.full else OneOf(self.words).write(which)

    def schema(self) -> Schema:
        return {"oneOf": [OneOf(self.words).schema(), schema_of((self.part,))]}


@dataclass(frozen=True, slots=True)
class Statements:
    """One statement of a block: a mapping with one key that names its class.

    `name` is its definition in the schema. The table of shapes is read late, since statements hold
    statements.
    """

    name: str
    shapes: Callable[[], Mapping[str, RecordShape]]

    def read(self, node: YamlNode, found: Findings) -> tree.Statement:
        shapes = self.shapes()
        if not isinstance(node, YamlMapping) or len(node.entries) != 1:
            title = "a statement is a mapping with one key, its kind"
            raise found.refuse(LangCode.TWIN_SHAPE, node.span, title, f"statements: {', '.join(shapes)}")
        ((key, value),) = node.entries
        if key.text not in shapes:
            help_ = did_you_mean(key.text, shapes) or (f"statements: {', '.join(shapes)}",)
            raise found.refuse(
                LangCode.TWIN_KEY, key.span, f"there is no statement `{key.text}` here", *help_
            )
        statement = shapes[key.text].read(value, found)
        assert isinstance(statement, tree.Statement)
        return statement

    def write(self, value: tree.Statement) -> Plain:
        # INVARIANT: the parser puts only allowed statements into a block, and the table has all of them.
        key, shape = next((key, shape) for key, shape in self.shapes().items() if shape.make is type(value))
        return {key: shape.write(value)}

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self) -> Schema:
        """Return the schema of the statement itself, to which `schema` refers."""
        return {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {key: shape.schema() for key, shape in self.shapes().items()},
        }

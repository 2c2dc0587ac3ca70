"""Reads objects out of request bodies: JSON or YAML, unknown and repeated fields, wrong types, empty values.

The result is the stored form: fields of its schema only, quantities in their canonical text, and no optional
field that is empty.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import yaml

from kdsl.base.quantity import parse_quantity
from kdsl.sandbox.model.errors import Json, bad_request
from kdsl.sandbox.model.schema import JsonShape, Node
from kdsl.sandbox.model.store import decode

MAX_BODY: Final = 3 * 1024 * 1024
"""The largest body in bytes that the API takes."""

_SHOWN: Final = 30
"""The number of bytes of an invalid body that an error quotes."""
_QUANTITY_ERROR: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_KEPT_EMPTY: Final = frozenset({"storageClassName", "type", "reportingComponent", "reportingInstance"})
"""Texts that are kept even if empty: empty and absent differ."""
_DROPPED_FALSE: Final = frozenset(
    {"unschedulable", "globalDefault", "hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty"}
)
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_GO_KINDS: Final = {
    bool: "bool",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}


class _TypeError(Exception):
    """A value with another type than its field."""


@dataclass(slots=True)
class Complaints:
    """The unknown fields of an object."""

    unknown_fields: list[str] = field(default_factory=list)

    def unknown(self, path: str) -> None:
        """Record the path of a field that is not in the schema."""
        self.unknown_fields.append(path)

    def texts(self) -> list[str]:
        """Return the complaints in the words of an API server."""
        return [f'unknown field "{path}"' for path in self.unknown_fields]


def parse_body(data: bytes, is_yaml: bool, kind: str, is_strict: bool) -> tuple[Any, list[str]]:
    """Return the value of a body and its repeated fields, which only a strict reader asks for."""
    if is_yaml:
        return _parse_yaml(data, kind), []
    if is_strict and data.count(b'"') > 2:
        repeated: list[str] = []
        value = _parse_strict(data, kind, repeated)
        return value, repeated
    try:
        return decode(data), []
    except (msgspec.DecodeError, RecursionError):
        return _parse_strict(data, kind, []), []


def parse_patch(data: bytes, kind: type, go_type: str) -> Any:
    """Return the value of a JSON or merge patch; raises 400 for an invalid one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"error decoding patch: {json_error(error)}") from None
    if not isinstance(value, kind):
        found = _GO_KINDS.get(type(value), "null")
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type {go_type}"
        )
    return value


def json_error(error: Exception) -> str:
    """Return Go's error text for invalid JSON."""
    if isinstance(error, RecursionError):
        return "exceeded max depth"
    if not isinstance(error, json.JSONDecodeError):
        return f"invalid character: {error}"
    place, text = error.pos, error.doc
    if place >= len(text.rstrip()) or "Unterminated string" in error.msg:
        return "unexpected end of JSON input"
    where = next((words for start, words in _PLACES if error.msg.startswith(start)), "")
    if where == _AFTER:
        opened = text.rfind("{", 0, place) > text.rfind("[", 0, place)
        where = "after object key:value pair" if opened else "after array element"
    return f"invalid character '{text[place]}' {where or error.msg}"


_AFTER: Final = "after"
_PLACES: Final = (
    ("Expecting property name", "looking for beginning of object key string"),
    ("Expecting value", "looking for beginning of value"),
    ("Expecting ':' delimiter", "after object key"),
    ("Expecting ',' delimiter", _AFTER),
    ("Extra data", "after top-level value"),
    ("Invalid control character", "in string literal"),
    ("Invalid \\escape", "in string escape code"),
)


def _summary(data: bytes) -> str:
    """Return the beginning of a body, as the server quotes it."""
    if not data:
        return "<empty>"
    rest = " ..." if len(data) > _SHOWN else ""
    head = data[:_SHOWN]
    return (head.decode("utf-8", "replace") if data[:1] == b"{" else head.hex()) + rest


def _parse_yaml(data: bytes, kind: str) -> Any:
    try:
        return yaml.load(data, _Loader)
    except yaml.YAMLError as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as the server reads it: `y` and `n` are booleans, and times are texts."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:y|Y|n|N)$"), list("yYnN"))
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def _parse_strict(data: bytes, kind: str, repeated: list[str]) -> Any:
    pairs_of: list[tuple[int, str]] = []

    def check(pairs: list[tuple[str, Any]]) -> Json:
        found: Json = {}
        for name, value in pairs:
            if name in found:
                pairs_of.append((id(found), name))
            found[name] = value
        return found

    try:
        value = json.loads(data, object_pairs_hook=check)
    except (ValueError, RecursionError) as error:
        what = f"couldn't get version/kind; json parse error: {json_error(error)} ({_summary(data)})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {what}") from None
    _name_repeated(value, "", dict.fromkeys(pairs_of), repeated)
    return value


def _name_repeated(value: Any, path: str, pairs: dict[tuple[int, str], None], found: list[str]) -> None:
    if not pairs:
        return
    if isinstance(value, dict):
        found.extend(f'duplicate field "{path}{name}"' for owner, name in pairs if owner == id(value))
        for name, item in value.items():
            _name_repeated(item, f"{path}{name}.", pairs, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _name_repeated(item, f"{path[:-1]}[{index}].", pairs, found)


def clean(value: Json, schema: Node, complaints: Complaints, api_version: str) -> Json:
    """Return an object with the fields of its schema, in the stored form; raises 400 for wrong types."""
    try:
        found: Json = _struct(value, schema, "", complaints)
    except _TypeError as error:
        version = api_version.rsplit("/", maxsplit=1)[-1]
        kind = schema.name
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None
    return found


def _struct(value: Json, schema: Node, path: str, complaints: Complaints) -> Json:
    fields = schema.fields
    found: Json = {}
    for name, item in value.items():
        node = fields.get(name)
        if node is None:
            complaints.unknown(path + name)
        elif item is not None:
            kept = _value(item, node, name, path, schema, complaints)
            if kept is not None:
                found[name] = kept
    return found


def _value(item: Any, node: Node, name: str, path: str, owner: Node, complaints: Complaints) -> Any:
    shape = node.shape
    if shape is JsonShape.STRING:
        if item.__class__ is not str:
            raise _mismatch(item, "string", owner, path + name)
        return item if item or name in _KEPT_EMPTY else None
    if shape is JsonShape.STRUCT:
        if not isinstance(item, dict):
            raise _mismatch(item, f"v1.{node.name}", owner, path + name)
        return _struct(item, node, f"{path}{name}.", complaints)
    if shape is JsonShape.LIST:
        return _list(item, node, name, path, owner, complaints)
    if shape is JsonShape.INTEGER:
        if item.__class__ is not int:
            raise _mismatch(item, "int64", owner, path + name)
        return item
    if shape is JsonShape.BOOLEAN:
        if item.__class__ is not bool:
            raise _mismatch(item, "bool", owner, path + name)
        return item if item or name not in _DROPPED_FALSE else None
    return _special(item, node, name, path, owner)


def _list(item: Any, node: Node, name: str, path: str, owner: Node, complaints: Complaints) -> Any:
    if not isinstance(item, list):
        raise _mismatch(item, f"[]v1.{node.item.name if node.item else ''}", owner, path + name)
    inner = node.item
    if inner is None or not item:
        return None
    if inner.shape is JsonShape.STRUCT:
        return [
            _struct(one, inner, f"{path}{name}[{index}].", complaints) if isinstance(one, dict) else {}
            for index, one in enumerate(item)
        ]
    if inner.shape is JsonShape.STRING:
        for one in item:
            if one is not None and one.__class__ is not str:
                raise _mismatch(one, "string", owner, path + name)
        return [one or "" for one in item]
    return [_value(one, inner, "", path, owner, complaints) for one in item]


def _special(item: Any, node: Node, name: str, path: str, owner: Node) -> Any:
    shape = node.shape
    if shape in (JsonShape.STRINGS, JsonShape.MAP, JsonShape.QUANTITIES):
        if not isinstance(item, dict):
            raise _mismatch(item, "map[string]string", owner, path + name)
        if shape is JsonShape.QUANTITIES:
            item = {key: canonical(one) for key, one in item.items()}
        elif shape is JsonShape.STRINGS:
            for one in item.values():
                if one.__class__ is not str:
                    raise _mismatch(one, "string", owner, path + name)
        return item or None
    if shape is JsonShape.QUANTITY:
        return canonical(item)
    if shape is JsonShape.MICRO_TIME:
        return _time(str(item), _MICRO_TIME, "2006-01-02T15:04:05.000000Z07:00", "microseconds")
    if shape is JsonShape.TIME:
        return _time(str(item), _TIME, "2006-01-02T15:04:05Z07:00", "seconds")
    return item


def _time(text: str, form: re.Pattern[str], layout: str, precision: str) -> str:
    """Return a time as it is stored: of UTC, to the second or microsecond."""
    if not form.fullmatch(text):
        raise _TypeError(_time_error(text, layout))
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _TypeError(f'parsing time "{text}": time out of range') from None
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def canonical(value: Any) -> str:
    """Return a quantity in the server's canonical form."""
    try:
        return str(parse_quantity(str(value)))
    except (ValueError, OverflowError):
        raise _TypeError(_QUANTITY_ERROR) from None


def _mismatch(item: Any, wanted: str, owner: Node, path: str) -> _TypeError:
    given = _GO_KINDS.get(type(item), "object")
    return _TypeError(
        f"json: cannot unmarshal {given} into Go struct field {owner.name}.{path} of type {wanted}"
    )


def _time_error(text: str, layout: str) -> str:
    if _TIME.fullmatch(text):
        return f'parsing time "{text}" as "{layout}": cannot parse "{text[19:]}" as ".000000"'
    return f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"'

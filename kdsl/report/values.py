"""Values of expressions for people and for programs: as CEL literals, and as typed JSON.

`kdsl eval` prints them. The JSON is protobuf's for `cel.expr.Value`, the form of the official conformance
suite; values beyond plain CEL are an `objectValue` whose `@type` names their type.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kdsl.check.model.types import DYN, QUANTITY, STRING, Type
from kdsl.check.views.view import ObjectPart, Views
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.eval.functions.conversions import text_of
from kdsl.eval.functions.formatting import QUALIFIED_NAMES
from kdsl.eval.functions.strings import quote
from kdsl.eval.values import Value, from_key, kind_of
from kdsl.eval.views import attribute_of, wrapper_of
from kdsl.plan.counts.topology import PodTermCount, TopologyCount

_CALLS = frozenset({"timestamp", "duration", "quantity", "semver", "ip", "cidr", "url"})
"""Types whose values print as a constructor call with their text."""


@dataclass(frozen=True, slots=True)
class ValuePrinter:
    """Prints values; the static type selects the view of a cluster object."""

    views: Views

    def text(self, value: Value, type_: Type = DYN) -> str:
        """Return the value as a CEL expression; a view by its name and fields."""
        kind = kind_of(value)
        match kind:
            case "list":
                return f"[{', '.join(self.text(item, _argument(type_, 0)) for item in value)}]"
            case "map":
                key_type, item_type = _argument(type_, 0), _argument(type_, 1)
                entries = (
                    f"{self.text(from_key(key), key_type)}: {self.text(item, item_type)}"
                    for key, item in value.items()
                )
                return f"{{{', '.join(entries)}}}"
            case "resources":
                return f"{{{', '.join(f'{quote(name)}: {self.text(item)}' for name, item in value.items())}}}"
            case "optional" if value.present:
                return f"optional.of({self.text(value.value, _argument(type_, 0))})"
            case _ if kind in _LITERALS:
                return _LITERALS[kind](value)
            case _ if kind in _CALLS:
                return f"{kind}({quote(_text(value))})"
        if isinstance(value, TopologyCount | PodTermCount):
            return f"{type_}{self.text(_counts(value))}"
        fields = [f"{name}: {self.text(item, field)}" for name, item, field in self._fields(value, type_)]
        fields += [f"{name}: {self.text(item)}" for name, item in _selection(value)]
        return f"{type_}{{{', '.join(fields)}}}"

    def json(self, value: Value, type_: Type = DYN) -> dict[str, Any]:
        """Return the value in the JSON form of `cel.expr.Value`."""
        kind = kind_of(value)
        match kind:
            case "list":
                return {"listValue": {"values": [self.json(item, _argument(type_, 0)) for item in value]}}
            case "map":
                key_type, item_type = _argument(type_, 0), _argument(type_, 1)
                return _map_json(
                    (self.json(from_key(key), key_type), self.json(item, item_type))
                    for key, item in value.items()
                )
            case "optional":
                held = {"value": self.json(value.value, _argument(type_, 0))} if value.present else {}
                return _object_json("optional_type", held)
            case "resources":
                entries = (
                    (self.json(name, STRING), self.json(item, QUANTITY)) for name, item in value.items()
                )
                return _object_json(kind, {"value": _map_json(entries)})
            case "format":
                return _object_json(QUALIFIED_NAMES[Type(kind)], {"value": value.name})
            case _ if kind in _JSON:
                key, convert = _JSON[kind]
                return {key: convert(value)}
            case _ if kind in _CALLS:
                return _object_json(QUALIFIED_NAMES[Type(kind)], {"value": _text(value)})
        if isinstance(value, TopologyCount | PodTermCount):
            return _object_json(str(type_), {"value": self.json(_counts(value))})
        fields = {name: self.json(item, field) for name, item, field in self._fields(value, type_)}
        return _object_json(str(type_), {"value": fields})

    def _fields(self, value: Value, type_: Type) -> Iterator[tuple[str, Value, Type]]:
        """Yield name, value and type of the fields of a view (without the paths to them) or of a nested part;
        none for opaque views.
        """
        view = self.views.types.get(type_.name)
        members = self.views.members(type_) if view is None else view.fields
        for name, member in members.items():
            if isinstance(member, ObjectPart):
                yield name, value, member.type
                continue
            attribute, wrap = getattr(value, attribute_of(member.name)), wrapper_of(member.type)
            yield name, attribute if wrap is None else wrap(attribute), member.type


def _selection(value: Value) -> Iterator[tuple[str, Value]]:
    """Yield what a term or constraint selects: rules cannot read it, but people ask for it."""
    if not isinstance(value, PodAffinityTerm | SpreadConstraint):
        return
    if value.selector is not None:
        yield "labelSelector", value.selector.text
    if isinstance(value, PodAffinityTerm):
        if value.namespaces:
            yield "namespaces", sorted(value.namespaces)
        if value.namespace_selector is not None:
            yield "namespaceSelector", value.namespace_selector.text


def _counts(value: TopologyCount | PodTermCount) -> dict[str, int] | dict[str, dict[str, int]]:
    """Return the numbers by domain; those of terms by topology key, then by domain, without zeros."""
    if isinstance(value, TopologyCount):
        return value.sums.by_domain()
    return {key: sums.by_domain() for key, sums in value.sums.by_key.items()}


def _argument(type_: Type, index: int) -> Type:
    return type_.args[index] if index < len(type_.args) else DYN


def _text(value: Value) -> str:
    return str(value) if kind_of(value) == "url" else text_of(value)


def _double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return f'double("{_special(value)}")'


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bytes(value: bytes) -> str:
    text = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\x{byte:02x}" for byte in value
    )
    return f'b"{text}"'


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "null_type": lambda value: "null",
    "bool": json.dumps,
    "int": str,
    "uint": lambda value: f"{int(value)}u",
    "double": _double,
    "string": quote,
    "bytes": _bytes,
    "optional": lambda value: "optional.none()",
    "type": lambda value: QUALIFIED_NAMES.get(value, str(value)),
    "format": lambda value: f"format.{value.name}()",
}
_JSON: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "null_type": ("nullValue", lambda value: None),
    "bool": ("boolValue", bool),
    "int": ("int64Value", str),
    "uint": ("uint64Value", lambda value: str(int(value))),
    "double": ("doubleValue", lambda value: value if math.isfinite(value) else _special(value)),
    "string": ("stringValue", str),
    "bytes": ("bytesValue", lambda value: base64.b64encode(value).decode("ascii")),
    "type": ("typeValue", lambda value: QUALIFIED_NAMES.get(value, str(value))),
}


def _map_json(entries: Iterator[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    return {"mapValue": {"entries": [{"key": key, "value": value} for key, value in entries]}}


def _object_json(name: str, body: Mapping[str, object]) -> dict[str, Any]:
    return {"objectValue": {"@type": f"type.googleapis.com/{name}", **body}}

"""What rule files can read of pods, nodes and the cluster: `views/*.yaml` as data.

The checker types fields and methods from it and derives binding times; back ends and docs list it. The
files are part of kdsl, so a mistake in one is a developer's and raises ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kdsl.check.signature import parse_type
from kdsl.check.types import BindingTime, Type

_SCOPE_TIMES = {"pod": BindingTime.POD, "node": BindingTime.NODE, "cluster": BindingTime.CLUSTER}
_READ_TIMES = {
    "node.static": BindingTime.NODE,
    "node.usage": BindingTime.USAGE,
    "cluster.images": BindingTime.CLUSTER,
    "cluster.nodes": BindingTime.CLUSTER,
    "queue": BindingTime.QUEUE,
}
_NOTHING_READ = "-"


@dataclass(frozen=True, slots=True)
class Field:
    """A field; `view` is the type that declares it, `optional` says that `has` tells something about it."""

    name: str
    view: str
    type: Type
    reads: frozenset[str]
    optional: bool
    doc: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method; `args` do not count the receiver, `reads` is what it reads beside receiver and arguments."""

    name: str
    view: str
    args: tuple[Type, ...]
    result: Type
    reads: frozenset[str]
    doc: str


@dataclass(frozen=True, slots=True)
class View:
    """A type of the views file with what it inherits folded in."""

    name: str
    base: str | None
    opaque: bool
    fields: Mapping[str, Field]
    methods: Mapping[str, Method]


@dataclass(frozen=True, slots=True)
class ViewFunction:
    """A function that makes a value of a view type; it reads nothing but its arguments."""

    name: str
    args: tuple[Type, ...]
    result: Type
    doc: str


@dataclass(frozen=True, slots=True)
class Views:
    """One views file. `scopes` maps a kind of rule (`predicate`, `score`, `queue`) to names and types."""

    minor: str
    scopes: Mapping[str, Mapping[str, Type]]
    types: Mapping[str, View]
    functions: Mapping[str, ViewFunction]

    def is_a(self, name: str, base: str) -> bool:
        """Tell whether the view `name` is `base` or extends it."""
        at: str | None = name
        while at is not None:
            if at == base:
                return True
            at = self.types[at].base if at in self.types else None
        return False


NO_VIEWS = Views("", {}, {}, {})
"""Views for expressions outside rule files: plain CEL."""


def scope_time(name: str) -> BindingTime:
    """Return the binding time of a name that the engine fills, such as `node`."""
    return _SCOPE_TIMES[name]


def time_of(reads: frozenset[str]) -> BindingTime:
    """Return when a value that reads `reads` is known."""
    return max(map(_read_time, reads), default=BindingTime.STATIC)


def load_views(minor: str = "1.36") -> Views:
    """Return the views of a Kubernetes minor; each file is read once."""
    return _load(minor)


@cache
def _load(minor: str) -> Views:
    path = Path(__file__).with_name("views") / f"v{minor.replace('.', '_')}.yaml"
    return read_views(yaml.safe_load(path.read_text(encoding="utf-8")))


def read_views(data: Any) -> Views:
    """Convert a parsed views file; unknown keys, types and `reads` raise ValueError naming the place."""
    top = _keys(data, "views", required=("minor", "scopes", "types"), optional=("functions",))
    types: dict[str, View] = {}
    for name, body in top["types"].items():
        types[name] = _view(name, body, types)
    functions = {name: _function(name, body) for name, body in top.get("functions", {}).items()}
    scopes = {
        kind: {name: parse_type(text) for name, text in names.items()}
        for kind, names in top["scopes"].items()
    }
    views = Views(top["minor"], scopes, types, functions)
    _check_type_names(views)
    return views


def _view(name: str, body: Any, known: Mapping[str, View]) -> View:
    body = _keys(body, name, optional=("opaque", "extends", "fields", "methods"))
    base = body.get("extends")
    if base is not None and base not in known:
        raise ValueError(f"{name}: extends {base!r}, which is not declared before it")
    fields = dict(known[base].fields) if base else {}
    methods = dict(known[base].methods) if base else {}
    for field, spec in body.get("fields", {}).items():
        fields[field] = _field(name, field, spec)
    for method, spec in body.get("methods", {}).items():
        methods[method] = _method(name, method, spec)
    return View(name, base, body.get("opaque", False), fields, methods)


def _field(view: str, name: str, spec: Any) -> Field:
    where = f"{view}.{name}"
    spec = _keys(spec, where, required=("type", "reads"), optional=("doc", "optional"))
    reads = _reads([] if spec["reads"] == _NOTHING_READ else [spec["reads"]], where)
    return Field(
        name, view, parse_type(spec["type"]), reads, spec.get("optional", False), spec.get("doc", "")
    )


def _method(view: str, name: str, spec: Any) -> Method:
    where = f"{view}.{name}"
    spec = _keys(spec, where, required=("args", "result", "reads"), optional=("doc",))
    args = tuple(map(parse_type, spec["args"]))
    return Method(
        name, view, args, parse_type(spec["result"]), _reads(spec["reads"], where), spec.get("doc", "")
    )


def _function(name: str, spec: Any) -> ViewFunction:
    spec = _keys(spec, name, required=("args", "result"), optional=("doc",))
    return ViewFunction(
        name, tuple(map(parse_type, spec["args"])), parse_type(spec["result"]), spec.get("doc", "")
    )


def _keys(
    data: Any, where: str, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{where}: not a mapping")
    if unknown := sorted(data.keys() - {*required, *optional}):
        raise ValueError(f"{where}: unknown keys {unknown}")
    if missing := sorted(set(required) - data.keys()):
        raise ValueError(f"{where}: missing keys {missing}")
    return data


def _reads(words: list[str], where: str) -> frozenset[str]:
    for word in words:
        try:
            _read_time(word)
        except KeyError:
            raise ValueError(f"{where}: unknown reads {word!r}") from None
    return frozenset(words)


def _read_time(word: str) -> BindingTime:
    return BindingTime.POD if word.startswith("pod.") else _READ_TIMES[word]


def _check_type_names(views: Views) -> None:
    known = {
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "timestamp",
        "duration",
        "quantity",
        "resources",
    }
    known |= {"list", "map", "optional", *views.types}

    def names(type_: Type) -> Iterator[str]:
        yield type_.name
        for arg in type_.args:
            yield from names(arg)

    mentioned = [type_ for scope in views.scopes.values() for type_ in scope.values()]
    for view in views.types.values():
        mentioned += [field.type for field in view.fields.values()]
        mentioned += [type_ for method in view.methods.values() for type_ in (*method.args, method.result)]
    mentioned += [type_ for call in views.functions.values() for type_ in (*call.args, call.result)]
    if unknown := sorted({name for type_ in mentioned for name in names(type_)} - known):
        raise ValueError(f"unknown types {unknown}")

"""The views of pods, nodes and the cluster that rule files read: the `*.yaml` beside this module as data.

The checker types fields and methods from it and derives binding times; back ends and docs list it. The
files are part of kdsl, so a mistake in one is a developer's and raises ValueError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kdsl.base.yaml_text import read_data_file
from kdsl.check.model.notation import parse_type
from kdsl.check.model.types import BindingTime, Type
from kdsl.check.views.view_checks import ANY_SIZE, check_sizes, check_type_names, keys_of

_SCOPE_TIMES = {
    "pod": BindingTime.POD,
    "now": BindingTime.QUEUE,
    "cluster": BindingTime.CLUSTER,
    "feasible": BindingTime.CLUSTER,
    "node": BindingTime.NODE,
    "onNominatedNode": BindingTime.USAGE,
    "victim": BindingTime.USAGE,
    "candidate": BindingTime.USAGE,
    **dict.fromkeys(("potentialNodes", "nodes", "percentageOfNodesToScore"), BindingTime.USAGE),
    "policy": BindingTime.POD,
    **dict.fromkeys(("container", "request"), BindingTime.NODE),
    **dict.fromkeys(("device", "other", "devices", "charge", "quota"), BindingTime.USAGE),
    **dict.fromkeys(("chosen", "fitting", "fullness", "allocated", "allocation"), BindingTime.USAGE),
}
_SCOPE_READS = {"feasible": frozenset({"feasible"})}
_READ_TIMES = {
    "node.static": BindingTime.NODE,
    "node.usage": BindingTime.USAGE,
    "cluster.images": BindingTime.CLUSTER,
    "cluster.nodes": BindingTime.CLUSTER,
    "cluster.static": BindingTime.CLUSTER,
    "cluster.pods": BindingTime.CLUSTER,
    "cluster.namespaces": BindingTime.CLUSTER,
    "cluster.services": BindingTime.CLUSTER,
    "cluster.storage": BindingTime.CLUSTER,
    "cluster.budgets": BindingTime.CLUSTER,
    "feasible": BindingTime.CLUSTER,
    "queue": BindingTime.QUEUE,
    "undeclared": BindingTime.CLUSTER,
}
UNDECLARED = frozenset({"undeclared"})
"""The reads of a plugin's function that declares none: anything, so nothing that uses it may be kept."""
_NOTHING_READ = "-"


@dataclass(frozen=True, slots=True)
class Field:
    """A field; `view` is the type that declares it, `optional` means that `has` can test its presence.

    A field of a plugin is a call of its function `fn` on the view.
    """

    name: str
    view: str
    type: Type
    reads: frozenset[str]
    optional: bool
    doc: str
    fn: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """A method: `args` exclude the receiver, `reads` exclude receiver and arguments."""

    name: str
    view: str
    args: tuple[Type, ...]
    result: Type
    reads: frozenset[str]
    doc: str


@dataclass(frozen=True, slots=True)
class ViewMacro:
    """A macro `x.name(variable, body)`: the body is evaluated for each `variable` of the collection `x`.

    `body` is the type that the body must have.
    """

    name: str
    view: str
    variable: Type
    body: Type
    result: Type
    reads: frozenset[str]
    doc: str


@dataclass(frozen=True, slots=True)
class View:
    """A type of the views file with its inherited members folded in.

    `instead` maps reads of inherited members, or the part before their dot, to those of this view.
    """

    name: str
    base: str | None
    opaque: bool
    fields: Mapping[str, Field]
    methods: Mapping[str, Method]
    macros: Mapping[str, ViewMacro] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    def reads_as(self, words: frozenset[str]) -> frozenset[str]:
        """Return the reads of this view for a member that reads `words` of a base."""
        meant = (self.instead.get(word, self.instead.get(word.partition(".")[0], word)) for word in words)
        return frozenset(word for word in meant if word != _NOTHING_READ)


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """A part of an object of the API, such as `pod.spec`: the value is the `view` itself, read by its `path`.

    `optional` means that `has` can test it: whether a field below it is set.
    """

    view: str
    path: str
    optional: bool

    @property
    def type(self) -> Type:
        """The type of expressions that stand for the part: `Pod.spec`. Nobody can write it."""
        return Type(f"{self.view}.{self.path}")


@dataclass(frozen=True, slots=True)
class ViewFunction:
    """A function that makes a value of a view type; it reads nothing but its arguments.

    One `of` a name in scope is short for its method: `topology(key)` for `cluster.topology(key)`.
    """

    name: str
    args: tuple[Type, ...]
    result: Type
    doc: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Views:
    """One views file. `scopes` maps a kind of rule (`predicate`, `score`, `queue`) to names and types.

    `paths` are where things stand in the API, by `View.path.to.field`: fields of the view by another name,
    and the parts on the way. `sizes` bounds how many items a field has, by `view.field`; `costs` says by
    `View.method` which sizes a method goes through, one for each item of the other.
    """

    minor: str
    scopes: Mapping[str, Mapping[str, Type]]
    types: Mapping[str, View]
    functions: Mapping[str, ViewFunction]
    sizes: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Mapping[str, Field | ObjectPart] = field(default_factory=dict)

    def has_members(self, type_: Type) -> bool:
        """Return whether a type is a view or a part of one."""
        return type_.name in self.types or isinstance(self.paths.get(type_.name), ObjectPart)

    def member(self, type_: Type, name: str) -> Field | ObjectPart | None:
        """Return the field or part of that name, in a view or in a part of one."""
        view = self.types.get(type_.name)
        found = None if view is None else view.fields.get(name)
        return found or self.paths.get(f"{type_.name}.{name}")

    def members(self, type_: Type) -> dict[str, Field | ObjectPart]:
        """Return the fields and parts of a view, or of a part of one, by name: fields first."""
        view, start = self.types.get(type_.name), f"{type_.name}."
        below = {
            path.removeprefix(start): each for path, each in self.paths.items() if path.startswith(start)
        }
        return {
            **({} if view is None else view.fields),
            **{name: each for name, each in below.items() if "." not in name},
        }

    def fields_below(self, part: ObjectPart) -> dict[str, Field]:
        """Return the fields of a part and of all parts of it, by path from the view."""
        start = f"{part.type.name}."
        return {
            path.removeprefix(f"{part.view}."): each
            for path, each in self.paths.items()
            if path.startswith(start) and isinstance(each, Field)
        }

    def most(self, size: str) -> int:
        """Return the bound of a size; one that the file does not name has that of `*`."""
        return self.sizes.get(size, self.sizes.get(ANY_SIZE, 0))

    def is_a(self, name: str, base: str) -> bool:
        """Return whether the view `name` is `base` or extends it."""
        at: str | None = name
        while at is not None:
            if at == base:
                return True
            at = self.types[at].base if at in self.types else None
        return False

    def reads_of(self, view: str) -> frozenset[str]:
        """Return the reads of all fields and methods of a view."""
        found = self.types[view]
        return frozenset().union(
            *(field.reads for field in found.fields.values()),
            *(method.reads for method in found.methods.values()),
        )

    def with_fields(self, fields: Iterable[Field]) -> Views:
        """Return the views with more fields, which those that extend a view have too."""
        fields = tuple(fields)
        if not fields:
            return self
        types = {
            name: replace(
                view,
                fields={
                    **view.fields,
                    **{
                        each.name: replace(each, reads=view.reads_as(each.reads))
                        for each in fields
                        if self.is_a(name, each.view)
                    },
                },
            )
            for name, view in self.types.items()
        }
        return replace(self, types=types)


NO_VIEWS = Views("", {}, {}, {})
"""Views for expressions outside rule files: plain CEL."""


def scope_time(name: str) -> BindingTime:
    """Return the binding time of a name that the engine fills, such as `node`."""
    return _SCOPE_TIMES[name]


def scope_reads(name: str) -> frozenset[str]:
    """Return the reads of a name that the engine fills, without those of its fields."""
    return _SCOPE_READS.get(name, frozenset())


def time_of(reads: frozenset[str]) -> BindingTime:
    """Return when a value that reads `reads` is known."""
    return max(map(_read_time, reads), default=BindingTime.STATIC)


def load_views(minor: str = "1.36") -> Views:
    """Return the views of a Kubernetes minor; its files are read once."""
    return _load(minor)


@cache
def _load(minor: str) -> Views:
    data: dict[str, Any] = {}
    for concern in ("", "paths"):
        data |= read_views_file(minor, concern)
    return read_views(data)


def read_views_file(minor: str, concern: str = "") -> Any:
    """Return the document of a Kubernetes minor about a concern, such as `events`; else about views."""
    name = ".".join(filter(None, (f"v{minor.replace('.', '_')}", concern, "yaml")))
    return read_data_file(Path(__file__).with_name(name))


def read_views(data: Any) -> Views:
    """Convert a parsed views file; unknown keys, types and `reads` raise ValueError naming the place."""
    optional = ("functions", "sizes", "costs", "paths", "optional")
    top = keys_of(data, "views", required=("minor", "scopes", "types"), optional=optional)
    types: dict[str, View] = {}
    for name, body in top["types"].items():
        types[name] = _view(name, body, types)
    functions = {name: _function(name, body) for name, body in top.get("functions", {}).items()}
    scopes = {
        kind: {name: parse_type(text) for name, text in names.items()}
        for kind, names in top["scopes"].items()
    }
    sizes = top.get("sizes", {})
    costs = {method: tuple(names) for method, names in top.get("costs", {}).items()}
    paths = dict(_paths(types, top.get("paths", {}), top.get("optional", {})))
    views = Views(top["minor"], scopes, types, functions, sizes, costs, paths)
    check_sizes(views)
    check_type_names(views)
    return views


def _view(name: str, body: Any, known: Mapping[str, View]) -> View:
    body = keys_of(body, name, optional=("opaque", "extends", "reads", "fields", "methods", "macros"))
    base = body.get("extends")
    if base is not None and base not in known:
        raise ValueError(f"{name}: extends {base!r}, which is not declared before it")
    view = known[base] if base else View(name, None, False, {}, {})
    view = replace(view, instead={**view.instead, **body.get("reads", {})})
    fields = {each.name: replace(each, reads=view.reads_as(each.reads)) for each in view.fields.values()}
    methods = {each.name: replace(each, reads=view.reads_as(each.reads)) for each in view.methods.values()}
    macros = {each: _macro(name, each, spec) for each, spec in body.get("macros", {}).items()}
    for each, spec in body.get("fields", {}).items():
        fields[each] = _field(name, each, spec)
    for method, spec in body.get("methods", {}).items():
        methods[method] = _method(name, method, spec)
    return View(
        name, base, body.get("opaque", False), fields, methods, {**view.macros, **macros}, view.instead
    )


def _paths(
    types: Mapping[str, View], paths: Mapping[str, Any], optional: Mapping[str, Any]
) -> Iterator[tuple[str, Field | ObjectPart]]:
    """Yield the parts and fields of every view by path, those that it inherits included."""
    if unknown := sorted({*paths, *optional} - types.keys()):
        raise ValueError(f"paths: unknown views {unknown}")
    for view in types.values():
        at: str | None = view.name
        while at is not None:
            lacking = optional.get(at, ())
            yield from _paths_of(view, paths.get(at, {}), lacking)
            at = types[at].base


def _paths_of(
    view: View, paths: Mapping[str, str], optional: Collection[str]
) -> Iterator[tuple[str, Field | ObjectPart]]:
    parts: dict[str, ObjectPart] = {}
    for path, name in paths.items():
        words = path.split(".")
        starts = [".".join(words[:end]) for end in range(1, len(words))]
        if name not in view.fields or words[0] in view.fields:
            raise ValueError(f"paths: {view.name}.{path}: {name!r} is not a field, or the path starts at one")
        parts |= {start: ObjectPart(view.name, start, start in optional) for start in starts}
        yield f"{view.name}.{path}", view.fields[name]
    if unknown := sorted(set(optional) - parts.keys()):
        raise ValueError(f"optional: {view.name}: no such parts {unknown}")
    for start, part in parts.items():
        yield f"{view.name}.{start}", part


def _field(view: str, name: str, spec: Any) -> Field:
    where = f"{view}.{name}"
    spec = keys_of(spec, where, required=("type", "reads"), optional=("doc", "optional"))
    reads = _reads([] if spec["reads"] == _NOTHING_READ else [spec["reads"]], where)
    return Field(
        name, view, parse_type(spec["type"]), reads, spec.get("optional", False), spec.get("doc", "")
    )


def _method(view: str, name: str, spec: Any) -> Method:
    where = f"{view}.{name}"
    spec = keys_of(spec, where, required=("args", "result", "reads"), optional=("doc",))
    args = tuple(map(parse_type, spec["args"]))
    return Method(
        name, view, args, parse_type(spec["result"]), _reads(spec["reads"], where), spec.get("doc", "")
    )


def _macro(view: str, name: str, spec: Any) -> ViewMacro:
    where = f"{view}.{name}"
    spec = keys_of(spec, where, required=("variable", "body", "result", "reads"), optional=("doc",))
    variable, body, result = (parse_type(spec[part]) for part in ("variable", "body", "result"))
    return ViewMacro(name, view, variable, body, result, _reads(spec["reads"], where), spec.get("doc", ""))


def _function(name: str, spec: Any) -> ViewFunction:
    spec = keys_of(spec, name, required=("args", "result"), optional=("doc", "of"))
    args, result = tuple(map(parse_type, spec["args"])), parse_type(spec["result"])
    return ViewFunction(name, args, result, spec.get("doc", ""), spec.get("of", ""))


def _reads(words: list[str], where: str) -> frozenset[str]:
    for word in words:
        try:
            _read_time(word)
        except KeyError:
            raise ValueError(f"{where}: unknown reads {word!r}") from None
    return frozenset(words)


def _read_time(word: str) -> BindingTime:
    return BindingTime.POD if word.startswith("pod.") else _READ_TIMES[word]

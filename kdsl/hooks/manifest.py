"""Reads the functions and fields that a plugin declares for rule files: `kdsl-plugin.yaml` beside its module.

A manifest is data: reading it runs no code of the plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.installed import InstalledPlugin, package_folder
from kdsl.base.paths import Path, path_text
from kdsl.base.span import Source, Span
from kdsl.check.model.notation import ARITIES, parse_type
from kdsl.check.model.types import Type
from kdsl.check.views.view import UNDECLARED, Views
from kdsl.config.misfits import misfits, place_of
from kdsl.config.schema_files import read_schema
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.requirement import satisfies
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, read_yaml, to_plain

MANIFEST_FILE: Final = "kdsl-plugin.yaml"
DEFAULT_COST: Final = 10
_RESULTS: Final = frozenset(
    ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "quantity", *ARITIES)
)
_ARGUMENTS: Final = _RESULTS | {"resources", "semver", "ip", "cidr"}
_KEYS: Final = frozenset(("bool", "int", "uint", "string"))
_NOT_FOR_PLUGINS: Final = frozenset(("queue", *UNDECLARED))


@dataclass(frozen=True, slots=True)
class Brought:
    """A function, or a field of `view`, as its manifest declares it.

    `reads` are the facts that its value depends on beside its arguments; `is_declared` is true if the
    manifest states them, or calls it pure. `target` is `module:name`, `cost` the steps of one call.
    """

    name: str
    view: str
    args: tuple[Type, ...]
    result: Type
    reads: frozenset[str]
    is_declared: bool
    cost: int
    target: str
    doc: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The declarations of a plugin. `requires` is the requirement on the version of kdsl, "" for none."""

    doc: str = ""
    requires: str = ""
    brought: tuple[Brought, ...] = ()


NO_MANIFEST: Final = Manifest()


def manifest_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of manifests."""
    return read_schema("kdsl.hooks", "plugin.v1alpha1")


def read_manifest(plugin: InstalledPlugin, views: Views) -> tuple[Manifest, tuple[Diagnostic, ...]]:
    """Read the manifest of an installed plugin; without one it adds nothing to rule files."""
    folder = package_folder(plugin.module)
    file = None if folder is None else folder / MANIFEST_FILE
    if file is None or not file.is_file():
        return NO_MANIFEST, ()
    try:
        source = Source(str(file), file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return NO_MANIFEST, (
            Diagnostic(PluginCode.MANIFEST, f"cannot read `{file}`: {error}", where=str(file)),
        )
    return parse_manifest(source, views)


def parse_manifest(source: Source, views: Views) -> tuple[Manifest, tuple[Diagnostic, ...]]:
    """Read the text of a manifest; with errors it adds nothing."""
    read = read_yaml(source)
    if has_errors(read.diagnostics):
        return NO_MANIFEST, read.diagnostics
    if len(read.documents) != 1 or not isinstance(read.documents[0], YamlMapping):
        title = f"`{source.path}` is no manifest: it must be one mapping"
        return NO_MANIFEST, (Diagnostic(PluginCode.MANIFEST, title, where=source.path),)
    (root,) = read.documents
    found = [replace(each, code=PluginCode.MANIFEST) for each in misfits(root, manifest_schema())]
    if found:
        return NO_MANIFEST, tuple(found)
    reader = _Reader(root, views, found)
    manifest = reader.manifest()
    return (NO_MANIFEST if found else manifest), tuple(found)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a tree that fits the schema."""

    root: YamlNode
    views: Views
    found: list[Diagnostic]

    def manifest(self) -> Manifest:
        values: Any = to_plain(self.root)
        requires = values.get("requires", "")
        try:
            satisfies("0", requires or ">=0")
        except ValueError as error:
            self._report(("requires",), str(error))
        functions = [
            self._function(("functions", name), spec) for name, spec in values.get("functions", {}).items()
        ]
        fields = [
            self._field(("fields", view, name), view, spec)
            for view, specs in values.get("fields", {}).items()
            for name, spec in specs.items()
        ]
        return Manifest(values.get("doc", ""), requires, (*functions, *fields))

    def _function(self, path: Path, spec: Mapping[str, Any]) -> Brought:
        known = _ARGUMENTS | {name for name in self.views.types if name != "QueuedPod"}
        args = tuple(
            self._type((*path, "args", index), text, known) for index, text in enumerate(spec["args"])
        )
        result = self._type((*path, "result"), spec["result"], _RESULTS)
        brought = self._brought(path, "", args, result, spec)
        for arg in dict.fromkeys(arg.name for arg in args if arg.name in ("Pod", "Node", "Cluster")):
            kind = arg.lower()
            if brought.is_declared and not any(word.startswith(f"{kind}.") for word in brought.reads):
                self._report((*path, "reads"), f"it takes a `{arg}` but declares no reads of it")
        return brought

    def _field(self, path: Path, view: str, spec: Mapping[str, Any]) -> Brought:
        name = str(path[-1])
        if name in self.views.types[view].fields or name in self.views.types[view].methods:
            self._report(path, f"`{view}` has a `{name}` already")
        result = self._type((*path, "type"), spec["type"], _RESULTS)
        brought = self._brought(path, view, (Type(view),), result, spec)
        for word in sorted(brought.reads - UNDECLARED):
            if word.startswith("pod.") != (view == "Pod"):
                self._report((*path, "reads"), f"a field of `{view}` cannot read `{word}`")
        return brought

    def _brought(
        self, path: Path, view: str, args: tuple[Type, ...], result: Type, spec: Mapping[str, Any]
    ) -> Brought:
        is_declared = spec.get("pure", False) and "reads" in spec
        return Brought(
            name=str(path[-1]),
            view=view,
            args=args,
            result=result,
            reads=self._reads((*path, "reads"), spec["reads"]) if is_declared else UNDECLARED,
            is_declared=is_declared,
            cost=int(spec.get("cost", DEFAULT_COST)),
            target=spec["call"],
            doc=spec.get("doc", ""),
            span=place_of(self.root, path),
        )

    def _reads(self, path: Path, words: Sequence[str]) -> frozenset[str]:
        known = frozenset().union(*map(self.views.reads_of, self.views.types)) - _NOT_FOR_PLUGINS
        for index, word in enumerate(words):
            if word not in known:
                help_ = did_you_mean(word, known) or (f"words: {', '.join(sorted(known))}",)
                self._report((*path, index), f"nothing is called `{word}` that could be read", help_)
        return frozenset(words)

    def _type(self, path: Path, text: str, known: frozenset[str]) -> Type:
        try:
            type_ = parse_type(text)
        except ValueError:
            self._report(path, f"`{text}` is no type", did_you_mean(text, known))
            return Type("error")
        for name in _unfit(type_, known):
            self._report(path, f"`{name}` cannot stand in `{text}` here", did_you_mean(name, known))
        return type_

    def _report(self, path: Path, title: str, help_: tuple[str, ...] = ()) -> None:
        span = place_of(self.root, path)
        self.found.append(Diagnostic(PluginCode.MANIFEST, f"`{path_text(path)}`: {title}", span, help=help_))


def _unfit(type_: Type, known: frozenset[str]) -> Iterator[str]:
    if type_.name not in known:
        yield type_.name
    if type_.name == "map" and type_.args[0].name not in _KEYS:
        yield type_.args[0].name
    for arg in type_.args:
        yield from _unfit(arg, known)

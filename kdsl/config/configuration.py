"""Reads a `KdslConfiguration`: which rules, profiles and plugins run, and how.

The composition root turns it into settings. Every key has an effect; what is not there, is not accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from kdsl.base.diagnostic import Diagnostic, Label, has_errors
from kdsl.base.span import Source, Span
from kdsl.config.codes import ConfigCode
from kdsl.config.misfits import misfits, place_of
from kdsl.lang.yaml_tree import YamlNode, read_yaml, to_plain

_EXAMPLE = "begin with `apiVersion: kdsl.dev/v1alpha1` and `kind: KdslConfiguration`"


@dataclass(frozen=True, slots=True)
class ConfiguredPlugin:
    """A plugin that is active. `span` is where its name stands, `args_span` where its arguments do."""

    name: str
    args: Mapping[str, Any]
    span: Span = field(compare=False, repr=False)
    args_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConfiguredName:
    """A name of something that is declared elsewhere, and where it stands."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KdslConfiguration:
    """What a configuration says, with the defaults of its schema where it says nothing.

    `rules` are relative to the working folder, none for the shipped ones; `plugins` is None for the default
    ones; `percentage` is that of the nodes to score, 0 to 100.
    """

    rules: tuple[Path, ...] = ()
    profile: ConfiguredName | None = None
    profiles: tuple[ConfiguredName, ...] = ()
    plugins: tuple[ConfiguredPlugin, ...] | None = None
    parallelism: int = 1
    percentage: int = 0
    tie_break: str = "heap"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """The configuration, or None with the diagnostics that say why there is none."""

    configuration: KdslConfiguration | None
    diagnostics: tuple[Diagnostic, ...]


def configuration_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of configurations."""
    text = resources.files("kdsl.config").joinpath("schemas/v1alpha1.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def load_configuration(path: Path) -> ConfigurationResult:
    """Read a configuration file. Paths in it are relative to its folder."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return _refused(Diagnostic(ConfigCode.UNREADABLE, f"cannot read `{path}`: {reason}", where=str(path)))
    except UnicodeDecodeError:
        return _refused(Diagnostic(ConfigCode.UNREADABLE, f"`{path}` is not UTF-8 text", where=str(path)))
    return read_configuration(Source(str(path), text), path.parent)


def read_configuration(source: Source, folder: Path = Path()) -> ConfigurationResult:
    """Read the text of a configuration, whose paths are relative to `folder`. Never raises."""
    read = read_yaml(source)
    if has_errors(read.diagnostics):
        return ConfigurationResult(None, read.diagnostics)
    if len(read.documents) != 1:
        return _refused(_not_one(source, read.documents))
    (root,) = read.documents
    found = misfits(root, configuration_schema())
    if found:
        return ConfigurationResult(None, found)
    configuration = _configuration(root, folder)
    found = tuple(_listed_twice(configuration))
    return ConfigurationResult(None if found else configuration, found)


def _refused(diagnostic: Diagnostic) -> ConfigurationResult:
    return ConfigurationResult(None, (diagnostic,))


def _not_one(source: Source, documents: tuple[YamlNode, ...]) -> Diagnostic:
    if documents:
        title = f"`{source.path}` holds {len(documents)} documents: a configuration is one"
        return Diagnostic(ConfigCode.UNREADABLE, title, documents[1].span)
    title = f"`{source.path}` is empty"
    return Diagnostic(ConfigCode.UNREADABLE, title, where=source.path, help=(_EXAMPLE,))


def _configuration(root: YamlNode, folder: Path) -> KdslConfiguration:
    """Build the configuration from a tree that fits the schema."""
    values: Any = to_plain(root)

    def name(*path: str | int, text: str) -> ConfiguredName:
        return ConfiguredName(text, place_of(root, path))

    plugins = None
    if "plugins" in values:
        plugins = tuple(
            ConfiguredPlugin(
                plugin["name"],
                plugin.get("args", {}),
                place_of(root, ("plugins", index, "name")),
                place_of(root, ("plugins", index, "args")),
            )
            for index, plugin in enumerate(values["plugins"])
        )
    return KdslConfiguration(
        rules=tuple(folder / path for path in values.get("rules", {}).get("paths", ())),
        profile=name("profile", text=values["profile"]) if "profile" in values else None,
        profiles=tuple(
            name("profiles", index, text=text) for index, text in enumerate(values.get("profiles", ()))
        ),
        plugins=plugins,
        # `2.0` is an integer to JSON Schema.
        parallelism=int(values.get("parallelism", 1)),
        percentage=int(values.get("percentageOfNodesToScore", 0)),
        tie_break=values.get("tieBreak", "heap"),
        seed=int(values.get("seed", 0)),
    )


def _listed_twice(configuration: KdslConfiguration) -> Iterator[Diagnostic]:
    first: dict[str, Span] = {}
    for plugin in configuration.plugins or ():
        if plugin.name in first:
            title = f"plugin `{plugin.name}` is listed twice"
            earlier = (Label(first[plugin.name], "the first one is here"),)
            yield Diagnostic(ConfigCode.LISTED_TWICE, title, plugin.span, secondary=earlier)
        first.setdefault(plugin.name, plugin.span)

"""Reads a `KdslConfiguration`: the rules, profiles and plugins to run, and their settings.

The composition root turns it into settings. Every key has an effect; unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final

from kdsl.base import paths
from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean, has_errors
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import read_named
from kdsl.base.span import Source, Span
from kdsl.base.times import SECOND, parse_duration
from kdsl.base.undecodable import undecodable
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import not_one
from kdsl.config.misfits import fitting_part, misfits, place_of
from kdsl.config.schema_files import read_schema
from kdsl.lang.discovery import NO_DRAFTS, Drafts
from kdsl.lang.yaml_tree import MAX_BYTES, YamlMapping, YamlNode, read_yaml, to_plain

_CONVERTED = ("KubeSchedulerConfiguration", "Policy")
_KIND = "KdslConfiguration kdsl.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class ConfiguredPlugin:
    """An active plugin, of a version that meets `requires` ("" for any).

    With `allow_undeclared` its functions need not declare their reads. `span` is the place of its name;
    `place` returns the place of the argument at a path, or of the nearest written value around it.
    """

    name: str
    args: Mapping[str, Any]
    requires: str
    allow_undeclared: bool
    span: Span = field(compare=False, repr=False)
    place: Callable[[paths.Path], Span] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ConfiguredName:
    """A name that is declared elsewhere, and its place."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of rules and plugins; None is no limit.

    `rule_cost` and `profile_cost` are operations for a node in the worst case. `node_steps` and `pod_steps`
    are counted at run time, for one node and for one value that is computed once for a pod. A plugin's hook
    that takes longer than `slow_hook` is reported; one that takes longer than `hook` is abandoned where that
    is possible. Both are nanoseconds, 0 for no limit.
    """

    rule_files: int | None = None
    rule_cost: int | None = None
    profile_cost: int | None = None
    node_steps: int = 20_000
    pod_steps: int = 1_000_000
    slow_hook: int = SECOND
    hook: int = 30 * SECOND
    rule_steps: int = 8_000_000
    profile_steps: int = 20_000_000


@dataclass(frozen=True, slots=True)
class ConfiguredBackoff:
    """The waiting time of pods between attempts, in nanoseconds: the first one, and the longest (0: no
    waiting).
    """

    initial: int
    maximum: int
    span: Span = field(compare=False, repr=False)


class OnInvalid(StrEnum):
    """The reaction of a running scheduler to a changed configuration that is invalid."""

    KEEP_LAST_GOOD = "keepLastGood"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class KdslConfiguration:
    """The content of a configuration, with the defaults of its schema.

    `rules` are relative to the working folder, with their places in the file; empty for the shipped rules.
    `plugins` is None for the default plugins. `percentage` is the percentage of nodes to score, 0 to 100.
    `backoff` is None where each queue has its own.
    """

    rules: tuple[Path, ...] = ()
    rule_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    profile: ConfiguredName | None = None
    profiles: tuple[ConfiguredName, ...] = ()
    plugins: tuple[ConfiguredPlugin, ...] | None = None
    parallelism: int = 1
    percentage: int = 0
    percentage_span: Span | None = field(default=None, compare=False, repr=False)
    plugins_span: Span | None = field(default=None, compare=False, repr=False)
    tie_break: str = "heap"
    seed: int = 0
    backoff: ConfiguredBackoff | None = None
    on_invalid: OnInvalid = OnInvalid.KEEP_LAST_GOOD
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class ConfigurationResult:
    """The configuration, or None with the diagnostics that explain why.

    `readable` are the parts without a mistake in their form, for the search for other mistakes;
    `names_rules` says that they name all rule files and plugins.
    """

    configuration: KdslConfiguration | None
    diagnostics: tuple[Diagnostic, ...]
    readable: KdslConfiguration | None = None
    names_rules: bool = True


DEFAULTS: Final = ConfigurationResult(KdslConfiguration(), (), KdslConfiguration())
"""The configuration where there is no file."""


def configuration_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of configurations."""
    return read_schema("kdsl.config", "v1alpha1")


def load_configuration(path: Path, drafts: Drafts = NO_DRAFTS) -> ConfigurationResult:
    """Read a configuration file, or its draft. Paths in it are relative to its folder."""
    try:
        content = drafts[path] if path in drafts else read_named(path, MAX_BYTES)
        text = content.decode("utf-8-sig")
    except OSError as error:
        return _refused(
            Diagnostic(ConfigCode.UNREADABLE, f"cannot read `{path}`: {reason_of(error)}", where=str(path))
        )
    except UnicodeDecodeError as error:
        return _refused(undecodable(ConfigCode.UNREADABLE, path, error))
    return read_configuration(Source(str(path), text), path.parent)


def read_configuration(source: Source, folder: Path = Path()) -> ConfigurationResult:
    """Read the text of a configuration, whose paths are relative to `folder`. Never raises."""
    read = read_yaml(source)
    if has_errors(read.diagnostics) and not (read.is_readable and len(read.documents) == 1):
        return ConfigurationResult(None, read.diagnostics)
    if len(read.documents) != 1:
        return _refused(not_one(source, read.documents, "a configuration", _KIND))
    (root,) = read.documents
    other = _of_another(root)
    if other is not None:
        return _refused(other)
    schema = configuration_schema()
    found = (*read.diagnostics, *misfits(root, schema))
    # Other keys can be read without `apiVersion`, too.
    part = fitting_part(root, {**schema, "required": []}) if found else root
    if not isinstance(part, YamlMapping):
        return ConfigurationResult(None, found)
    readable = _configuration(part, folder)
    found = (*found, *_listed_twice(readable), *_odd_backoff(readable.backoff))
    return ConfigurationResult(None if found else readable, found, readable, _names_rules(part, root, schema))


def _names_rules(part: YamlMapping, root: YamlNode, schema: Mapping[str, Any]) -> bool:
    """Return whether a readable part has all rule files and plugins of the whole."""
    assert isinstance(root, YamlMapping)
    unknown = [key.text for key, _ in root.entries if key.text not in schema["properties"]]
    for key in ("rules", "plugins"):
        whole, read = root.get(key), part.get(key)
        if whole is None and any(did_you_mean(each, [key]) for each in unknown):
            return False
        if whole is not None and (read is None or to_plain(read) != to_plain(whole)):
            return False
    return True


def _refused(diagnostic: Diagnostic) -> ConfigurationResult:
    return ConfigurationResult(None, (diagnostic,))


def _of_another(root: YamlNode) -> Diagnostic | None:
    """Return a diagnostic for a configuration of another scheduler that `kdsl convert` can read."""
    kind = root.get("kind") if isinstance(root, YamlMapping) else None
    if kind is None or to_plain(kind) not in _CONVERTED:
        return None
    path = kind.span.source.path
    title = f"`{path}` is the configuration of another scheduler"
    help_ = (f"`kdsl convert --write {path}` makes rules and a configuration of it",)
    return Diagnostic(ConfigCode.WRONG_VALUE, title, kind.span, "of kube-scheduler", help=help_)


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
                plugin.get("requires", ""),
                plugin.get("allowUndeclared", False),
                place_of(root, ("plugins", index, "name")),
                partial(_place_of_argument, root, index),
            )
            for index, plugin in enumerate(values["plugins"])
        )
    rules = values.get("rules", {}).get("paths", ())
    return KdslConfiguration(
        rules=tuple(folder / path for path in rules),
        rule_spans=tuple(place_of(root, ("rules", "paths", index)) for index in range(len(rules))),
        profile=name("profile", text=values["profile"]) if "profile" in values else None,
        profiles=tuple(
            name("profiles", index, text=text) for index, text in enumerate(values.get("profiles", ()))
        ),
        plugins=plugins,
        plugins_span=place_of(root, ("plugins",)),
        # JSON Schema counts `2.0` as an integer.
        parallelism=int(values.get("parallelism", 1)),
        percentage=int(values.get("percentageOfNodesToScore", 0)),
        percentage_span=place_of(root, ("percentageOfNodesToScore",)),
        tie_break=values.get("tieBreak", "heap"),
        seed=int(values.get("seed", 0)),
        backoff=_backoff(values["backoff"], place_of(root, ("backoff",))) if "backoff" in values else None,
        on_invalid=OnInvalid(values.get("onInvalid", OnInvalid.KEEP_LAST_GOOD)),
        limits=_limits(values.get("limits", {})),
    )


def _backoff(values: Mapping[str, str], span: Span) -> ConfiguredBackoff:
    return ConfiguredBackoff(parse_duration(values["initial"]), parse_duration(values["max"]), span)


def _odd_backoff(backoff: ConfiguredBackoff | None) -> Iterator[Diagnostic]:
    if backoff is not None and 0 < backoff.maximum < backoff.initial:
        title = "the first wait of `backoff` is longer than the longest"
        yield Diagnostic(ConfigCode.WRONG_VALUE, title, backoff.span, "`max` is less than `initial`")


def _limits(values: Mapping[str, Any]) -> Limits:
    keys = {
        "ruleFiles": "rule_files",
        "ruleCost": "rule_cost",
        "profileCost": "profile_cost",
        "nodeSteps": "node_steps",
        "podSteps": "pod_steps",
        "slowHook": "slow_hook",
        "hook": "hook",
        "ruleSteps": "rule_steps",
        "profileSteps": "profile_steps",
    }
    return Limits(
        **{
            keys[key]: parse_duration(value) if isinstance(value, str) else int(value)
            for key, value in values.items()
        }
    )


def _place_of_argument(root: YamlNode, plugin: int, path: paths.Path) -> Span:
    return place_of(root, ("plugins", plugin, "args", *path))


def _listed_twice(configuration: KdslConfiguration) -> Iterator[Diagnostic]:
    first: dict[str, Span] = {}
    for plugin in configuration.plugins or ():
        if plugin.name in first:
            title = f"plugin `{plugin.name}` is listed twice"
            earlier = (Label(first[plugin.name], "the first one is here"),)
            yield Diagnostic(ConfigCode.LISTED_TWICE, title, plugin.span, secondary=earlier)
        first.setdefault(plugin.name, plugin.span)

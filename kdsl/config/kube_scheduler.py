"""Reads a `KubeSchedulerConfiguration` v1 as kube-scheduler 1.36 does: decoded strictly, validated,
defaulted, its plugin lists merged and expanded.

The result names the plugins at each point with their arguments; `kube_rules` writes it as rules. A value that
kube-scheduler would refuse is an error, a feature that kdsl lacks a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Label, Severity, did_you_mean, has_errors
from kdsl.base.span import Source, Span
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import not_one
from kdsl.config.kube_arguments import Arguments, check_arguments
from kdsl.config.kube_extenders import check_extenders, extender_arguments, ignored_by_scheduler
from kdsl.config.kube_gaps import check_gaps
from kdsl.config.kube_plugins import ALL, GATED, MULTI_POINT_KEY, PLUGINS, REMOVED, ExtensionPoint
from kdsl.config.kube_points import Enabled, ListedPlugin, PluginSet, expand
from kdsl.config.misfits import fitting_part, misfits, node_at, place_of, places_of, unfit_keys
from kdsl.config.schema_files import read_schema
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml, to_plain

KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER: Final = "default-scheduler"
SKIP_OR_WRITE: Final = "`--skip-unknown` leaves it out; rules can replace it: see docs/write-rules.md"
"""The help for a plugin without a counterpart in kdsl."""
_NEAR: Final = 0.8
"""The smallest similarity of a suggested name: many unknown names are a little similar to a known one."""
_ABOUT_WHAT_IS_MISSING: Final = (ConfigCode.MISSING_KEY, ConfigCode.CONFLICT)


@dataclass(frozen=True, slots=True)
class KubeProfile:
    """One profile: its scheduler name, its plugins, and their arguments with defaults.

    `percentage` is percentageOfNodesToScore, 0 for the adaptive percentage.
    """

    scheduler: str
    enabled: Enabled
    arguments: Arguments
    percentage: int


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """The parts of a configuration that affect decisions. Back-offs are in seconds; `parallelism` may be
    unset.

    `extenders` are arguments of the plugin that calls them.
    """

    profiles: tuple[KubeProfile, ...]
    parallelism: int | None = None
    initial_backoff: int = 1
    max_backoff: int = 10
    extenders: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class KubeSchedulerResult:
    """The configuration, or None with the errors that explain why; warnings come with either."""

    configuration: KubeSchedulerConfiguration | None
    diagnostics: tuple[Diagnostic, ...]


@cache
def kube_scheduler_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (2020-12) of the configurations that can be imported."""
    return read_schema("kdsl.config", "kube-scheduler.v1")


def read_kube_scheduler(source: Source, *, skips_unknown: bool = False) -> KubeSchedulerResult:
    """Read the text of a configuration. Never raises.

    With `skips_unknown`, plugins without a counterpart in kdsl are left out, with a warning.
    """
    written, fitting, found = fitting_document(source, kube_scheduler_schema(), "configuration")
    if written is None or fitting is None:
        return KubeSchedulerResult(None, found)
    reader = _Reader(fitting, written)
    configuration = reader.configuration()
    if found:
        reader.found = [each for each in reader.found if _is_certain(each, found, written)]
    more = [*reader.found, *reader.in_parts]
    if skips_unknown:
        more = skipped(more)
    diagnostics = tuple(sorted((*found, *more), key=lambda each: each.span.start if each.span else 0))
    return KubeSchedulerResult(None if has_errors(diagnostics) else configuration, diagnostics)


def _is_certain(each: Diagnostic, unfit: Sequence[Diagnostic], root: YamlNode) -> bool:
    """Return whether a diagnostic does not come from the values that did not fit and were left out.

    One that was left out cannot be distinguished from a missing one, in its own part of the configuration.
    """
    if each.code not in _ABOUT_WHAT_IS_MISSING:
        return True
    parts = {_part(one.span, root) for one in unfit}
    return each.severity is Severity.ERROR and _part(each.span, root) not in parts


def _part(span: Span | None, root: YamlNode) -> Span | None:
    """Return the place of the profile or extender that holds `span`; None outside of them.

    Its mappings and the items of its lists, such as the arguments of a plugin, are parts of their own, and
    of a profile each value but its name.
    """
    parts: list[YamlNode] = []
    for name, values in root.entries if isinstance(root, YamlMapping) else ():
        for item in values.items if isinstance(values, YamlSequence) else ():
            for key, value in item.entries if isinstance(item, YamlMapping) else ():
                is_alone = name.text == "profiles" and key.text != "schedulerName"
                inner = value.items if isinstance(value, YamlSequence) else (value,)
                parts += (each for each in inner if is_alone or isinstance(each, YamlMapping))
            parts.append(item)
    return next((each.span for each in parts if span and span.begins_in(each.span)), None)


def skipped(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics, with unknown plugins, which are left out, as warnings."""
    return [
        replace(
            each, severity=Severity.WARNING, help=tuple(line for line in each.help if line != SKIP_OR_WRITE)
        )
        if each.code == ConfigCode.UNKNOWN_PLUGIN
        else each
        for each in found
    ]


def fitting_document(
    source: Source, schema: Mapping[str, Any], noun: str
) -> tuple[YamlNode | None, YamlNode | None, tuple[Diagnostic, ...]]:
    """Read the one document of a text; return it and the part that fits the schema, None without one, and
    errors.
    """
    read = read_yaml(source)
    if not read.is_readable:
        return None, None, read.diagnostics
    if len(read.documents) != 1:
        return None, None, (not_one(source, read.documents, f"a {noun}"),)
    root = _without_nulls(read.documents[0])
    found = (*read.diagnostics, *misfits(root, schema))
    # Without a right `apiVersion` the rest can be read.
    return root, (fitting_part(root, {**schema, "required": []}) if found else root), found


def _without_nulls(node: YamlNode) -> YamlNode:
    """Return a tree without keys that have no value: kube-scheduler treats them as absent."""
    match node:
        case YamlMapping(span, entries):
            kept = [(key, value) for key, value in entries if not _is_null(value)]
            return YamlMapping(span, tuple((key, _without_nulls(value)) for key, value in kept))
        case YamlSequence(span, items):
            return YamlSequence(span, tuple(map(_without_nulls, items)))
        case _:
            return node


def _is_null(node: YamlNode) -> bool:
    return isinstance(node, YamlScalar) and node.value is None


class _Reader:
    """Reads a tree that fits the schema; `found` collects the other errors in it, and `in_parts` those in
    extenders and in arguments of plugins.

    `written` is the tree with the values that do not fit.
    """

    def __init__(self, root: YamlNode, written: YamlNode) -> None:
        self._root, self._written = root, places_of(written)
        self._values: Any = to_plain(root)
        self.found: list[Diagnostic] = []
        self.in_parts: list[Diagnostic] = []

    def configuration(self) -> KubeSchedulerConfiguration:
        values = self._values
        initial, most = values.get("podInitialBackoffSeconds", 1), values.get("podMaxBackoffSeconds", 10)
        if most < initial:
            self._report(
                ConfigCode.CONFLICT,
                f"podMaxBackoffSeconds ({most}) is less than podInitialBackoffSeconds ({initial})",
                "podMaxBackoffSeconds" if "podMaxBackoffSeconds" in values else "podInitialBackoffSeconds",
            )
        election = values.get("leaderElection", {})
        if election.get("leaderElect", True) and election.get("resourceLock", "leases") != "leases":
            self._report(
                ConfigCode.WRONG_VALUE,
                "leaders are elected by `leases` only",
                "leaderElection",
                "resourceLock",
            )
        extenders = values.get("extenders", ())
        self.in_parts += check_extenders(
            extenders,
            lambda *path: self._place("extenders", *path),
            lambda index: self._unfit("extenders", index),
        )
        profiles: Sequence[Mapping[str, Any]] = values.get("profiles") or ({},)
        self._check_names(profiles)
        ignored = ignored_by_scheduler(extenders)
        read = tuple(self._profile(index, each, ignored) for index, each in enumerate(profiles))
        return KubeSchedulerConfiguration(
            read, values.get("parallelism"), initial, most, extender_arguments(extenders)
        )

    # ---- profiles ----------------------------------------------------------------------------------------

    def _check_names(self, profiles: Sequence[Mapping[str, Any]]) -> None:
        first: dict[str, Span] = {}
        for index, profile in enumerate(profiles):
            span = self._place("profiles", index, "schedulerName")
            name = profile.get("schedulerName", DEFAULT_SCHEDULER if len(profiles) == 1 else None)
            if name is None:
                title = f"`profiles[{index}]` has no schedulerName: only a profile that is alone needs none"
                self.found.append(Diagnostic(ConfigCode.MISSING_KEY, title, _head(span)))
            elif name in first:
                title = f"two profiles are for scheduler name `{name}`"
                labels = (Label(first[name], "the first one is here"),)
                self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, span, secondary=labels))
            else:
                first[name] = span

    def _profile(self, index: int, values: Mapping[str, Any], ignored: Sequence[str]) -> KubeProfile:
        plugins = values.get("plugins", {})
        keys = (MULTI_POINT_KEY, *ExtensionPoint)
        sets = {key: self._plugin_set(index, key, plugins[key]) for key in keys if key in plugins}
        enabled = expand(sets, self.found)
        place = self._place("profiles", index)
        self._check_needed(enabled, self._place("profiles", index, "plugins"))
        arguments = self._arguments(index, values.get("pluginConfig", ()), ignored)
        self.found += check_gaps(enabled, sets, arguments, _head(place))
        return KubeProfile(
            values.get("schedulerName", DEFAULT_SCHEDULER),
            enabled,
            arguments,
            values.get("percentageOfNodesToScore", self._values.get("percentageOfNodesToScore", 0)),
        )

    def _plugin_set(self, index: int, point: str, values: Mapping[str, Any]) -> PluginSet:
        """Read the lists of a point; report and leave out enabled plugins that kdsl does not have."""

        def listed(key: str) -> Iterator[ListedPlugin]:
            for number, each in enumerate(values.get(key, ())):
                span = self._place("profiles", index, "plugins", point, key, number, "name")
                yield ListedPlugin(each["name"], each.get("weight", 0), span)

        disabled = tuple(listed("disabled"))
        for each in disabled:
            if each.name not in (ALL, *PLUGINS, *GATED) and each.span:
                title = f"there is no plugin `{each.name}` to disable"
                help_ = did_you_mean(each.name, PLUGINS)
                self.found.append(
                    Diagnostic(
                        ConfigCode.UNKNOWN_PLUGIN, title, each.span, severity=Severity.WARNING, help=help_
                    )
                )
        enabled = tuple(listed("enabled"))
        for each in enabled:
            if each.name not in PLUGINS and each.span:
                self.found.append(_unknown(each.name, each.span))
        return PluginSet(tuple(each for each in enabled if each.name in PLUGINS), disabled)

    def _check_needed(self, enabled: Enabled, place: Span) -> None:
        """Report a profile without the plugins that kube-scheduler needs."""
        if not enabled.points[ExtensionPoint.QUEUE_SORT]:
            title = "the profile has no plugin at `queueSort`: exactly one is needed"
            self.found.append(
                Diagnostic(ConfigCode.MISSING_KEY, title, _head(place), help=("enable PrioritySort",))
            )
        if not enabled.points[ExtensionPoint.BIND]:
            title = "the profile has no plugin at `bind`: at least one is needed"
            self.found.append(
                Diagnostic(ConfigCode.MISSING_KEY, title, _head(place), help=("enable DefaultBinder",))
            )

    def _arguments(
        self, index: int, configs: Sequence[Mapping[str, Any]], ignored: Sequence[str]
    ) -> Arguments:
        """Read pluginConfig; resources that extenders manage replace the `ignoredResources` of
        NodeResourcesFit.
        """
        given: dict[str, Mapping[str, Any]] = {}
        for number, config in enumerate(configs):
            name, args = config["name"], config.get("args", {})
            path = ("profiles", index, "pluginConfig", number)
            span = self._place(*path, "name")
            if name in given:
                title = f"plugin `{name}` is configured twice"
                self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, span))
                continue
            given[name] = args
            if name in REMOVED:
                self.found.append(_unknown(name, span))
            elif name not in (*PLUGINS, *GATED):
                title = f"arguments for plugin `{name}` are not used: kdsl does not have it"
                self.found.append(
                    Diagnostic(
                        ConfigCode.UNKNOWN_PLUGIN,
                        title,
                        span,
                        severity=Severity.WARNING,
                        help=did_you_mean(name, PLUGINS),
                    )
                )
            unfit = self._unfit(*path, "args")
            self.in_parts += check_arguments(name, args, partial(self._place, *path, "args"), unfit)
        if ignored:
            self._check_ignored(given.get("NodeResourcesFit", {}), index, configs, ignored)
            given["NodeResourcesFit"] = {
                **given.get("NodeResourcesFit", {}),
                "ignoredResources": list(ignored),
            }
        return Arguments(given)

    def _unfit(self, *path: str | int) -> frozenset[str]:
        return unfit_keys(self._written, node_at(self._root, path))

    def _check_ignored(
        self,
        args: Mapping[str, Any],
        index: int,
        configs: Sequence[Mapping[str, Any]],
        ignored: Sequence[str],
    ) -> None:
        """Warn of `ignoredResources` that the extenders' resources replace."""
        lost = [each for each in args.get("ignoredResources", ()) if each not in ignored]
        if not lost:
            return
        number = next(at for at, each in enumerate(configs) if each["name"] == "NodeResourcesFit")
        span = self._place("profiles", index, "pluginConfig", number, "args", "ignoredResources")
        names = ", ".join(f"`{each}`" for each in lost)
        title = f"`ignoredResources` is not used: {names} will count"
        why = "resources that an extender manages take its place, in kube-scheduler too"
        help_ = ("to ignore them all, name them under `managedResources` with `ignoredByScheduler: true`",)
        self.found.append(
            Diagnostic(ConfigCode.CONFLICT, title, span, why, severity=Severity.WARNING, help=help_)
        )

    def _place(self, *path: str | int) -> Span:
        return place_of(self._root, path)

    def _report(self, code: ConfigCode, title: str, *path: str | int) -> None:
        self.found.append(Diagnostic(code, title, self._place(*path)))


def _head(span: Span) -> Span:
    """Return the first line of a span of several lines."""
    end = span.text.find("\n")
    return span if end < 0 else Span(span.source, span.start, span.start + end)


def _unknown(name: str, span: Span) -> Diagnostic:
    """Return the diagnostic of an enabled plugin without a counterpart in kdsl."""
    if name in REMOVED:
        title = f"plugin `{name}` was removed from kube-scheduler"
        return Diagnostic(
            ConfigCode.UNKNOWN_PLUGIN, title, span, help=("leave it out: NodeVolumeLimits does its work",)
        )
    if name in GATED:
        title = f"plugin `{name}` is behind a feature gate of kube-scheduler; kdsl has nothing for it"
        return Diagnostic(ConfigCode.UNKNOWN_PLUGIN, title, span, help=("leave it out",))
    title = f"unknown plugin `{name}`"
    why = "not a plugin of kube-scheduler 1.36"
    near = get_close_matches(name, PLUGINS, n=1, cutoff=_NEAR)
    help_ = SKIP_OR_WRITE
    if near:
        help_ = f"did you mean `{near[0]}`?"
    return Diagnostic(ConfigCode.UNKNOWN_PLUGIN, title, span, why, help=(help_,))

"""The composition root: builds a running engine from checked rules. Only this module imports all parts of the
core.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kdsl.analysis.cost.codes import CostCode
from kdsl.analysis.cost.profiles import CostLimits, over_budget
from kdsl.base.clock import Clock
from kdsl.base.diagnostic import Diagnostic, Severity, has_errors
from kdsl.base.disk_cache import DiskCache
from kdsl.base.errors import InvalidInputError
from kdsl.base.heap import growing_heap
from kdsl.base.installed import installed_plugins
from kdsl.base.span import Span
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.names.externals import PLUGINS, Externals
from kdsl.check.views.view import load_views
from kdsl.config.codes import ConfigCode
from kdsl.config.configuration import ConfigurationResult, KdslConfiguration, Limits, OnInvalid
from kdsl.cycle.decision import TieBreak
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.ports import ClusterSource, Evictor, Router, Tracer
from kdsl.cycle.search import ALL_NODES
from kdsl.cycle.waiting import WaitingPods
from kdsl.eval.scalar.meter import Steps
from kdsl.hooks.context import (
    NO_ANNOTATIONS,
    NO_CLAIMS,
    NO_MANIFESTS,
    NO_VOLUMES,
    Binder,
    ClaimWriter,
    Manifests,
    NodeAnnotator,
    PluginContext,
    PodAnnotator,
    VolumeBinder,
)
from kdsl.hooks.doctor import examine, examine_rules
from kdsl.hooks.extensions import bring, check_version
from kdsl.hooks.guard import Guard, HookTimes
from kdsl.hooks.manager import declared_hooks, import_plugin
from kdsl.hooks.specs import Backoff
from kdsl.hooks.table import HookTable
from kdsl.lang.discovery import NO_DRAFTS, Drafts
from kdsl.plan.compile.device_conditions import CelConditions
from kdsl.plan.router import ForcedProfile, ProfileRouter
from kdsl.profiles import (
    devices_in_use,
    find_profile,
    hook_tables,
    narrowed,
    profiles_in_use,
    qualified_profile,
)
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.checking import check_rules, check_text
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, Plugins, libraries, shipped_rules
from kdsl.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "DEFAULT_PLUGINS",
    "DEFAULT_SETTINGS",
    "PLACED_PLUGINS",
    "ActivePlugins",
    "CheckedRules",
    "Plugins",
    "Scheduler",
    "Settings",
    "activate",
    "build_engine",
    "build_scheduler",
    "check_configuration",
    "check_configured",
    "check_loaded",
    "check_rules",
    "check_text",
    "configured",
    "devices_in_use",
    "engine_options",
    "examine_plugins",
    "find_profile",
    "hook_tables",
    "libraries",
    "locate",
    "narrowed",
    "shipped_rules",
]

_NO_PROFILE: Final = "the rules have no profile: they decide about no pod"
_A_PROFILE: Final = 'add one, such as `profile mine extends kubernetes.default { scheduler "mine" }`'


@dataclass(frozen=True, slots=True)
class ActivePlugins:
    """The active plugins with their arguments, and their declarations for rule files; incomplete after
    errors.
    """

    args: Mapping[str, Mapping[str, Any]]
    externals: Externals
    diagnostics: tuple[Diagnostic, ...]


def activate(settings: Settings) -> ActivePlugins:
    """Read the declarations of the active plugins for rule files; plugins are imported, not built."""
    return ActivePlugins(settings.plugins, *bring(settings.plugins, load_views(), settings.undeclared))


def check_configured(
    configuration: KdslConfiguration,
    paths: Sequence[Path] = (),
    drafts: Drafts = NO_DRAFTS,
    keep: DiskCache | None = None,
    with_trees: bool = False,
) -> CheckedRules:
    """Check the rules of `paths`, else of the configuration, else the shipped ones, with its plugins.

    The answer is stored in the cache `keep`, and read from there: its syntax trees only `with_trees`.
    """
    settings = configured(configuration)
    chosen = paths or configuration.rules or (shipped_rules(),)
    checked = check_rules(chosen, settings.plugins, settings.undeclared, drafts, keep, with_trees)
    return replace(checked, diagnostics=locate(checked.diagnostics, configuration))


def configured(configuration: KdslConfiguration) -> Settings:
    """Return the settings of a configuration."""
    plugins, limits = configuration.plugins, configuration.limits
    return Settings(
        profile=configuration.profile.text if configuration.profile else None,
        profiles=tuple(profile.text for profile in configuration.profiles),
        seed=configuration.seed,
        tie_break=TieBreak(configuration.tie_break),
        parallelism=configuration.parallelism,
        percentage=configuration.percentage,
        plugins=DEFAULT_PLUGINS
        if plugins is None
        else {**PLACED_PLUGINS, **{plugin.name: plugin.args for plugin in plugins}},
        undeclared=frozenset(plugin.name for plugin in plugins or () if plugin.allow_undeclared),
        steps=Steps(limits.node_steps, limits.pod_steps, limits.rule_steps, limits.profile_steps),
        backoff=Backoff(configuration.backoff.initial, configuration.backoff.maximum)
        if configuration.backoff is not None
        else None,
        guard=Guard(HookTimes(configuration.limits.slow_hook, configuration.limits.hook)),
    )


def check_loaded(
    loaded: ConfigurationResult,
    paths: Sequence[Path] = (),
    drafts: Drafts = NO_DRAFTS,
    keep: DiskCache | None = None,
) -> CheckedRules:
    """Check a configuration that was read, its rules (see `check_configured`) and its plugins.

    All mistakes are reported together; of a broken configuration those of its readable parts.
    """
    configuration, found = loaded.readable or KdslConfiguration(), loaded.diagnostics
    checked = CheckedRules(None, (), 0)
    is_known = loaded.readable is not None and loaded.names_rules
    if is_known:
        checked = check_configured(configuration, paths, drafts, keep)
    profiles = checked.profiles if is_known else None
    more = check_configuration(configuration, checked.rules, checked.files, profiles, paths)
    more += tuple(_no_own_profile(checked, paths or configuration.rules))
    # Both checks report a plugin that is not installed.
    return replace(checked, diagnostics=tuple(dict.fromkeys((*found, *checked.diagnostics, *more))))


def _no_own_profile(checked: CheckedRules, paths: Iterable[Path]) -> Iterator[Diagnostic]:
    """Warn of rules without a profile that import a package with one: that alone decides."""
    names = () if checked.rules is None else tuple(checked.rules.profiles)
    if names and all(name.rpartition(".")[0] in checked.borrowed for name in names):
        title = f"the rules have no profile: only `{'`, `'.join(names)}` decides, without them"
        where = ", ".join(map(str, paths))
        yield Diagnostic(
            ConfigCode.NO_EFFECT, title, severity=Severity.WARNING, where=where, help=(_A_PROFILE,)
        )


def check_configuration(
    configuration: KdslConfiguration,
    rules: RuleSet | None,
    files: int,
    profiles: Collection[str] | None = None,
    paths: Sequence[Path] = (),
) -> tuple[Diagnostic, ...]:
    """Report requirements of a configuration that the rules or installed plugins do not meet, and limits that
    rules exceed.

    `files` is the number of rule files, `paths` replace those of the configuration. Of rules with errors only
    the names of their `profiles` are compared, if they are known. Plugins are imported, not built.
    """
    found = [] if rules is None else list(_check_limits(configuration.limits, rules, files))
    names = profiles if rules is None else rules.profiles
    profile = configuration.profile
    for name in (*configuration.profiles, *((profile,) if profile else ())):
        try:
            qualified_profile((name.text,) if names is None else names, name.text)
        except InvalidInputError as error:
            found += [replace(problem, span=name.span) for problem in error.diagnostics]
    if rules is not None and not rules.profiles:
        where = ", ".join(map(str, paths or configuration.rules))
        found.append(Diagnostic("K0301", _NO_PROFILE, where=where, help=(_A_PROFILE,)))
    if rules is not None and not has_errors(found):
        found += _unread_percentage(configuration, rules)
    for plugin in configuration.plugins or ():
        found += import_plugin(plugin.name, plugin.args, plugin.place)[1]
        found += check_version(plugin.name, plugin.requires)
    if not has_errors(found):
        found += _no_binder(configuration)
    return locate(found, configuration)


def examine_plugins(
    names: Collection[str], configuration: KdslConfiguration | None = None
) -> tuple[Diagnostic, ...]:
    """Report the errors of installed plugins and rule packages; plugins are imported, not built."""
    # Kept rules need no parser, which takes long to import.
    from kdsl.lang.loader import library_clashes

    plugins = None if configuration is None else configuration.plugins or ()
    configured = None if plugins is None else {plugin.name: plugin for plugin in plugins}
    found = (*examine(names, load_views(), configured), *examine_rules(), *library_clashes(libraries()))
    return found if configuration is None else locate(found, configuration)


def locate(found: Iterable[Diagnostic], configuration: KdslConfiguration) -> tuple[Diagnostic, ...]:
    """Give findings about configured plugins and rule files, if they have no place, that of their names."""
    paths = map(str, configuration.rules)
    spans: dict[str, Span | None] = dict(zip(paths, configuration.rule_spans, strict=False))
    spans |= {f"{PLUGINS}.{plugin.name}": plugin.span for plugin in configuration.plugins or ()}
    return tuple(each if each.span else replace(each, span=spans.get(each.where)) for each in found)


def _unread_percentage(configuration: KdslConfiguration, rules: RuleSet) -> Iterator[Diagnostic]:
    """Warn of a percentageOfNodesToScore that no `sample` reads; 100 has an effect without one."""
    if configuration.percentage in (0, ALL_NODES):
        return
    samples = [profile.sample for profile in profiles_in_use(rules, configured(configuration))]
    if not any(each is not None and each.reads_name("percentageOfNodesToScore") for each in samples):
        title = "no profile reads percentageOfNodesToScore in its `sample`"
        help_ = ("extend `kubernetes.v1_36.default`, or write a `sample` that reads it",)
        span = configuration.percentage_span
        yield Diagnostic(ConfigCode.NO_EFFECT, title, span, "has no effect", Severity.WARNING, help=help_)


def _no_binder(configuration: KdslConfiguration) -> Iterator[Diagnostic]:
    """Warn of plugins of which none has a `bind` hook; the hooks of some cannot be determined."""
    if configuration.plugins is None:
        return
    names = {plugin.name for plugin in configuration.plugins}
    hooks = [declared_hooks(plugin) for plugin in installed_plugins() if plugin.name in names]
    if all(each is not None and "bind" not in each for each in hooks):
        title = "no plugin of this configuration binds pods: every pod stays pending"
        help_ = ("add `name: default-binder` to `plugins`",)
        yield Diagnostic(
            ConfigCode.NO_BINDER, title, configuration.plugins_span, "", Severity.WARNING, help=help_
        )


def _check_limits(limits: Limits, rules: RuleSet, files: int) -> Iterator[Diagnostic]:
    if limits.rule_files is not None and files > limits.rule_files:
        title = f"there are {files} rule files, {limits.rule_files} are allowed"
        yield Diagnostic(CostCode.TOO_MANY_FILES, title, where="limits.ruleFiles")
    yield from over_budget(rules, CostLimits(limits.rule_cost, limits.profile_cost), load_views())


def build_engine(
    rules: RuleSet,
    cluster: ClusterSource,
    binder: Binder,
    clock: Clock,
    settings: Settings,
    volumes: VolumeBinder = NO_VOLUMES,
    evictor: Evictor | None = None,
    tracer: Tracer | None = None,
    annotator: PodAnnotator = NO_ANNOTATIONS,
    manifests: Manifests = NO_MANIFESTS,
    nodes: NodeAnnotator | None = None,
    claims: ClaimWriter = NO_CLAIMS,
) -> Engine:
    """Compile the profiles, activate the plugins and build an engine of both.

    Pods are routed by scheduler name and team; a forced profile takes them all. Without an `evictor`
    decisions name victims, but nothing removes them. `tracer` is called at every attempt. Raises
    InvalidInputError if a profile or plugin is unusable.
    """
    waiting: WaitingPods[Any] = WaitingPods()
    context = PluginContext(
        binder,
        clock,
        waiting,
        volumes,
        annotator,
        manifests,
        nodes,
        claims=claims,
        conditions=CelConditions(),
    )
    with growing_heap():
        made = build_scheduler(rules, context, settings)
    return Engine(
        made.tables,
        cluster,
        clock,
        made.options,
        tracer=tracer,
        waiting=waiting,
        router=made.router,
        evictor=evictor,
    )


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The product of a configuration: compiled profiles, their router, and engine options.

    `rules` and `settings` are its sources, `context` is the one its plugins were built with. `Engine.adopt`
    switches to another one.
    """

    rules: RuleSet
    settings: Settings
    tables: tuple[HookTable, ...]
    router: Router
    options: EngineOptions
    context: PluginContext
    on_invalid: OnInvalid = OnInvalid.KEEP_LAST_GOOD


def build_scheduler(rules: RuleSet, context: PluginContext, settings: Settings) -> Scheduler:
    """Compile the profiles and build the plugins; raise InvalidInputError if one is unusable."""
    tables = hook_tables(rules, context, settings)
    router: Router
    if settings.profile is not None:
        router = ForcedProfile(tables[0].profile)
    else:
        router = ProfileRouter(rules, (table.profile for table in tables))
    return Scheduler(rules, settings, tables, router, engine_options(rules, settings), context)


def engine_options(rules: RuleSet, settings: Settings) -> EngineOptions:
    """Return the settings that concern the engine itself."""
    return EngineOptions(
        seed=settings.seed,
        tie_break=settings.tie_break,
        parallelism=settings.parallelism,
        percentage=settings.percentage,
        detail=settings.detail,
        rules=rules.digest,
    )

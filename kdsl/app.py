"""The composition root: checked rules to a running engine. The only place that knows all of the core."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from kdsl.base.clock import Clock, ManualClock
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.check.externals import PLUGINS, Externals
from kdsl.check.model import CheckedProfile, RuleSet
from kdsl.check.views import load_views
from kdsl.config.configuration import KdslConfiguration, Limits, OnInvalid
from kdsl.cycle.decision import Detail, TieBreak
from kdsl.cycle.engine import Engine, EngineOptions
from kdsl.cycle.ports import ClusterSource, Evictor, Router, Tracer
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import (
    NO_ANNOTATIONS,
    NO_MANIFESTS,
    NO_VOLUMES,
    Binder,
    Manifests,
    NodeAnnotator,
    PluginContext,
    PodAnnotator,
    VolumeBinder,
)
from kdsl.hooks.doctor import examine, examine_rules
from kdsl.hooks.extensions import bring, check_version
from kdsl.hooks.manager import PluginManager, import_plugin
from kdsl.hooks.specs import Backoff
from kdsl.hooks.table import HookTable, ProfileOrder, freeze
from kdsl.lang.loader import library_clashes
from kdsl.plan.cost.codes import CostCode
from kdsl.plan.cost.profiles import Budget, over_budget
from kdsl.plan.devices.plugin import DevicesPlugin, compile_devices
from kdsl.plan.hookimpls import PredicatePlugin, QueuePlugin, ScorePlugin, compile_profile
from kdsl.plan.preemption import PreemptionPlugin
from kdsl.plan.residual import AFTER
from kdsl.plan.router import DEFAULT_SCHEDULER, ForcedProfile, ProfileRouter
from kdsl.plan.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.plan.scalar.probe import Probe
from kdsl.plan.standing.join import join
from kdsl.plan.tightened import TightenedPlugin
from kdsl.rulebook.checking import CheckedRules, check_rules, check_text
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, Plugins, libraries, shipped_rules

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
    "shipped_rules",
]

RulePlugin: TypeAlias = (
    PredicatePlugin
    | TightenedPlugin[PredicatePlugin]
    | ScorePlugin
    | QueuePlugin
    | PreemptionPlugin
    | DevicesPlugin
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run.

    `profile` forces one profile for the pods of every scheduler; otherwise `profiles` run, or all where it is
    empty. `plugins` are active with these arguments; those called `undeclared` may bring functions that do
    not say what they read. A `probe` watches the rules at work, `steps` bound them. `backoff` is how long
    pods wait between attempts, None for what each queue says. For kinds of pods that are met more than
    `rewrite_after` times rules are rewritten: their answers stay the same.
    """

    profile: str | None = None
    profiles: tuple[str, ...] = ()
    seed: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    parallelism: int = 1
    percentage: int = 0
    detail: Detail = Detail.SUMMARY
    plugins: Plugins = field(default_factory=lambda: DEFAULT_PLUGINS)
    undeclared: frozenset[str] = frozenset()
    probe: Probe | None = None
    steps: Steps = DEFAULT_STEPS
    backoff: Backoff | None = None
    rewrite_after: int = AFTER

    @property
    def shows_manifests(self) -> bool:
        """Tell whether a plugin may ask for objects as they were written: any but the default ones."""
        return not self.plugins.keys() <= DEFAULT_PLUGINS.keys()


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True, slots=True)
class ActivePlugins:
    """The active plugins with their arguments, and what they bring to rule files; with errors, not all."""

    args: Mapping[str, Mapping[str, Any]]
    externals: Externals
    diagnostics: tuple[Diagnostic, ...]


def activate(settings: Settings) -> ActivePlugins:
    """Read what the active plugins bring to rule files; they are imported, not built."""
    return ActivePlugins(settings.plugins, *bring(settings.plugins, load_views(), settings.undeclared))


def check_configured(
    configuration: KdslConfiguration,
    paths: Sequence[Path] = (),
    read: Callable[[Path], bytes] = Path.read_bytes,
    keep: Path | None = None,
) -> CheckedRules:
    """Check the rules of `paths`, else of the configuration, else the shipped ones, with its plugins.

    The answer is kept in the folder `keep`, and taken from there.
    """
    settings = configured(configuration)
    chosen = paths or configuration.rules or (shipped_rules(),)
    checked = check_rules(chosen, settings.plugins, settings.undeclared, read, keep)
    return replace(checked, diagnostics=locate(checked.diagnostics, configuration))


def configured(configuration: KdslConfiguration) -> Settings:
    """Return the settings that a configuration asks for."""
    plugins = configuration.plugins
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
        steps=Steps(configuration.limits.node_steps, configuration.limits.pod_steps),
        backoff=Backoff(configuration.backoff.initial, configuration.backoff.maximum)
        if configuration.backoff is not None
        else None,
    )


def check_configuration(
    configuration: KdslConfiguration, rules: RuleSet, files: int
) -> tuple[Diagnostic, ...]:
    """Say what the rules and the installed plugins do not have or take, and what the rules take too much of.

    `files` is the number of rule files. Plugins are imported, not built.
    """
    found = list(_check_limits(configuration.limits, rules, files))
    profile = configuration.profile
    for name in (*configuration.profiles, *((profile,) if profile else ())):
        try:
            find_profile(rules, name.text)
        except InvalidInputError as error:
            found += [replace(problem, span=name.span) for problem in error.diagnostics]
    for plugin in configuration.plugins or ():
        found += import_plugin(plugin.name, plugin.args, plugin.place)[1]
        found += check_version(plugin.name, plugin.requires)
    return locate(found, configuration)


def examine_plugins(
    names: Collection[str], configuration: KdslConfiguration | None = None
) -> tuple[Diagnostic, ...]:
    """Say what is wrong with installed plugins and rule packages; plugins are imported, not built."""
    plugins = None if configuration is None else configuration.plugins or ()
    configured = None if plugins is None else {plugin.name: plugin for plugin in plugins}
    found = (*examine(names, load_views(), configured), *examine_rules(), *library_clashes(libraries()))
    return found if configuration is None else locate(found, configuration)


def locate(found: Iterable[Diagnostic], configuration: KdslConfiguration) -> tuple[Diagnostic, ...]:
    """Give findings about configured plugins that have no place of their own that of the plugin's name."""
    spans = {f"{PLUGINS}.{plugin.name}": plugin.span for plugin in configuration.plugins or ()}
    return tuple(each if each.span else replace(each, span=spans.get(each.where)) for each in found)


def _check_limits(limits: Limits, rules: RuleSet, files: int) -> Iterator[Diagnostic]:
    if limits.rule_files is not None and files > limits.rule_files:
        title = f"there are {files} rule files, {limits.rule_files} are allowed"
        yield Diagnostic(CostCode.TOO_MANY_FILES, title, where="limits.ruleFiles")
    yield from over_budget(rules, Budget(limits.rule_cost, limits.profile_cost), load_views())


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
) -> Engine:
    """Compile the profiles, activate the plugins and put both into an engine.

    Pods are routed by scheduler name and team; a forced profile takes them all. Without an `evictor`
    decisions name victims, and nobody removes them. `tracer` is told of every attempt. Raises
    InvalidInputError where a profile or plugin cannot be used.
    """
    waiting: WaitingPods[Any] = WaitingPods()
    context = PluginContext(binder, clock, waiting, volumes, annotator, manifests, nodes)
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
    """What a configuration makes: profiles that are ready to run, who gets which, and how.

    `context` is what its plugins were built with. `Engine.adopt` runs another one.
    """

    tables: tuple[HookTable, ...]
    router: Router
    options: EngineOptions
    context: PluginContext
    on_invalid: OnInvalid = OnInvalid.KEEP_LAST_GOOD


def build_scheduler(rules: RuleSet, context: PluginContext, settings: Settings) -> Scheduler:
    """Compile the profiles and build the plugins; raise InvalidInputError where one cannot be used."""
    tables = hook_tables(rules, context, settings)
    router: Router
    if settings.profile is not None:
        router = ForcedProfile(tables[0].profile)
    else:
        router = ProfileRouter(rules, (table.profile for table in tables))
    return Scheduler(tables, router, engine_options(rules, settings), context)


def engine_options(rules: RuleSet, settings: Settings) -> EngineOptions:
    """Return what settings say to the engine itself."""
    return EngineOptions(
        seed=settings.seed,
        tie_break=settings.tie_break,
        parallelism=settings.parallelism,
        percentage=settings.percentage,
        detail=settings.detail,
        rules=rules.digest,
    )


def hook_tables(rules: RuleSet, context: PluginContext, settings: Settings) -> tuple[HookTable, ...]:
    """Freeze every profile, or the forced one, with the active plugins.

    Raises InvalidInputError with all that is wrong.
    """
    manager = PluginManager()
    found: list[Diagnostic] = []
    for name, args in {**PLACED_PLUGINS, **settings.plugins}.items():
        found.extend(manager.load(name, args, context))
    tables: list[HookTable] = []
    for profile in _profiles_in_use(rules, settings):
        table, problems = _freeze_profile(manager, rules, profile, context, settings)
        found.extend(problems)
        if table is not None:
            own = settings.backoff
            tables.append(table if own is None else replace(table, backoff=own))
    if has_errors(found):
        raise InvalidInputError(found)
    return tuple(tables)


def devices_in_use(rules: RuleSet, settings: Settings, schedulers: Collection[str]) -> DevicesPlugin | None:
    """Return the devices of the forced profile, else of the first active one of these that has some.

    They are for looking at cards: they write nothing.
    """
    for profile in _profiles_in_use(rules, settings):
        if profile.sharing and (settings.profile is not None or profile.scheduler in schedulers):
            return compile_devices(rules, profile, NO_ANNOTATIONS, ManualClock(), settings.steps)
    return None


def _profiles_in_use(rules: RuleSet, settings: Settings) -> Collection[CheckedProfile]:
    names = settings.profiles if settings.profile is None else (settings.profile,)
    return [find_profile(rules, name) for name in names] or rules.profiles.values()


def narrowed(rules: RuleSet, settings: Settings, schedulers: Collection[str]) -> Settings:
    """Return settings that leave out profiles which no pod gets that asks for one of these schedulers.

    Compiling a profile takes time, most of all one with devices.
    """
    if settings.profile is not None:
        return settings
    # Pods that ask for nothing may be a team's, and who has no profile of a name gets the default one.
    wanted = {*schedulers, DEFAULT_SCHEDULER}
    teams = {team.profile for team in rules.teams}
    profiles = tuple(
        profile.qualified
        for profile in _profiles_in_use(rules, settings)
        if profile.scheduler in wanted or profile.qualified in teams
    )
    return replace(settings, profiles=profiles) if profiles else settings


def find_profile(rules: RuleSet, name: str, where: str = "--profile") -> CheckedProfile:
    """Return the profile of this qualified name, or the only one whose last word it is.

    Raises InvalidInputError where that is not one profile; `where` is what said the name.
    """
    if name in rules.profiles:
        return rules.profiles[name]
    found = [profile for profile in rules.profiles.values() if profile.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"`{profile.qualified}`" for profile in found)
        problem = Diagnostic("K0301", f"several profiles are called `{name}`: {names}", where=where)
    else:
        known = [*rules.profiles, *(profile.name for profile in rules.profiles.values())]
        help_ = (*did_you_mean(name, known), f"profiles: {', '.join(rules.profiles)}")
        problem = Diagnostic("K0301", f"there is no profile `{name}`", where=where, help=help_)
    raise InvalidInputError([problem])


def _freeze_profile(
    manager: PluginManager,
    rules: RuleSet,
    profile: CheckedProfile,
    context: PluginContext,
    settings: Settings,
) -> tuple[HookTable | None, tuple[Diagnostic, ...]]:
    """Register the rules of a profile like any plugin, and freeze them in the profile's order."""
    compiled = compile_profile(rules, profile, settings.probe, settings.steps, settings.rewrite_after)
    found: list[Diagnostic] = []
    preemption = compiled.preemption
    devices = compile_devices(
        rules,
        profile,
        context.annotator,
        context.clock,
        settings.steps,
        settings.probe,
        context.nodes,
    )
    rule_plugins: list[RulePlugin] = [*compiled.predicates, *compiled.scores, compiled.queue]
    rule_plugins += [*((preemption,) if preemption else ()), *((devices,) if devices else ())]
    for plugin in rule_plugins:
        found.extend(manager.register(plugin, plugin.name, key=plugin.key))
    predicates = (plugin.key for plugin in compiled.predicates)
    scores = (plugin.key for plugin in compiled.scores)
    placed = {rule.plugin for rule in profile.predicates}
    placed |= {entry.score.plugin for entry in profile.scores}
    order = ProfileOrder(
        name=profile.qualified,
        scheduler=profile.scheduler,
        predicates=(
            *(rule.plugin or next(predicates) for rule in profile.predicates),
            # Cards come last: most nodes are out by then.
            *((devices.key,) if devices else ()),
        ),
        scores=(
            *((entry.score.plugin or next(scores), entry.weight) for entry in profile.scores),
            *(((devices.key, devices.weight),) if devices else ()),
        ),
        queue=compiled.queue.key,
        check_all=profile.check_all,
        preemption=preemption.key if preemption else "",
        plugins=tuple(name for name in settings.plugins if name not in PLACED_PLUGINS or name in placed),
    )
    table, problems = freeze(manager, order)
    if table is not None and settings.probe is None:
        table = join(table, profile, compiled)
    return table, (*found, *problems)

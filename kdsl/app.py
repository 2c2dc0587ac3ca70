"""The composition root: rule files to a running engine. The only place that knows every layer of the core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kdsl.base.clock import Clock
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.check.checker import check_program
from kdsl.check.externals import NO_EXTERNALS, PLUGINS, ExternalRule, ExternalRules
from kdsl.check.model import CheckedProfile, RuleSet
from kdsl.config.configuration import KdslConfiguration
from kdsl.cycle.decision import Detail, TieBreak
from kdsl.cycle.engine import Engine, EngineOptions
from kdsl.cycle.ports import ClusterSource, Router
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import Binder, PluginContext
from kdsl.hooks.installed import BAD_ARGUMENT, installed_plugins
from kdsl.hooks.manager import PluginManager, declared_hooks, import_plugin
from kdsl.hooks.table import FILTER_HOOKS, SCORE_HOOKS, HookTable, ProfileOrder, freeze
from kdsl.lang.loader import Program, load_rules
from kdsl.lang.tree import RuleKind
from kdsl.plan.hookimpls import PredicatePlugin, QueuePlugin, ScorePlugin, compile_profile
from kdsl.plan.overlap import check_overlaps
from kdsl.plan.router import ForcedProfile, ProfileRouter
from kdsl.plan.scalar.probe import Probe
from kdsl.plan.tightened import TightenedPlugin

DEFAULT_PLUGINS: Mapping[str, Mapping[str, Any]] = {"default-binder": {}}
"""The plugins that are active unless the settings say otherwise, with their arguments."""


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """What became of some rule files.

    `rules` is None where they cannot be used; `files` counts those that were read.
    """

    rules: RuleSet | None
    diagnostics: tuple[Diagnostic, ...]
    files: int
    program: Program


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run.

    `profile` forces one profile for the pods of every scheduler; otherwise `profiles` run, or all where it is
    empty. `plugins` are active with these arguments. A `probe` watches the rules at work.
    """

    profile: str | None = None
    profiles: tuple[str, ...] = ()
    seed: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    parallelism: int = 1
    percentage: int = 0
    detail: Detail = Detail.SUMMARY
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: DEFAULT_PLUGINS)
    probe: Probe | None = None


def shipped_rules() -> Path:
    """Return the folder of the shipped rules: inside an installed package, or beside it in a checkout.

    Below the current folder it is a relative path, as verdicts show it.
    """
    package = Path(__file__).parent
    installed = package / "shipped_rules"
    folder = installed if installed.is_dir() else package.parent / "rules"
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def check_rules(
    paths: Sequence[Path | str], plugins: Collection[str] = DEFAULT_PLUGINS.keys()
) -> CheckedRules:
    """Load and check the rule files of `paths`, whose profiles may place the active `plugins`.

    Packages that they import and do not hold come from the shipped rules.
    """
    loaded = load_rules(paths, library=(shipped_rules(),))
    files = len(loaded.program.files)
    if has_errors(loaded.diagnostics):
        return CheckedRules(None, loaded.diagnostics, files, loaded.program)
    checked = check_program(loaded.program, externals=_externals(loaded.program, plugins))
    overlaps = () if checked.rules is None else check_overlaps(checked.rules)
    found = (*loaded.diagnostics, *checked.diagnostics, *overlaps)
    return CheckedRules(None if has_errors(overlaps) else checked.rules, found, files, loaded.program)


def _externals(program: Program, active: Collection[str]) -> ExternalRules:
    """Return what installed plugins bring to profiles. No plugin is imported for rules that name none."""
    if not any(f"{PLUGINS}." in file.span.source.text for file in program.files):
        return NO_EXTERNALS
    rules = [
        ExternalRule(name, name in active, _kinds(name) if name in active else frozenset())
        for name in dict.fromkeys(plugin.name for plugin in installed_plugins())
    ]
    # Of two plugins that rules call the same, the one that is active is meant.
    return {rule.name: rule for rule in sorted(rules, key=lambda rule: rule.is_active)}


def _kinds(plugin: str) -> frozenset[RuleKind]:
    """Return what a plugin can be placed as: anything where only building it would tell."""
    hooks = declared_hooks(plugin)
    if hooks is None:
        return frozenset(RuleKind)
    places = ((RuleKind.PREDICATE, FILTER_HOOKS), (RuleKind.SCORE, SCORE_HOOKS))
    return frozenset(kind for kind, wanted in places if not hooks.isdisjoint(wanted))


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
        plugins=DEFAULT_PLUGINS if plugins is None else {plugin.name: plugin.args for plugin in plugins},
    )


def check_configuration(configuration: KdslConfiguration, rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Say what the rules and the installed plugins do not have or take. Plugins are imported, not built."""
    found: list[Diagnostic] = []
    profile = configuration.profile
    for name in (*configuration.profiles, *((profile,) if profile else ())):
        try:
            find_profile(rules, name.text)
        except InvalidInputError as error:
            found += [replace(problem, span=name.span) for problem in error.diagnostics]
    for plugin in configuration.plugins or ():
        for problem in import_plugin(plugin.name, plugin.args)[1]:
            is_about_args = problem.code == BAD_ARGUMENT
            found.append(replace(problem, span=plugin.args_span if is_about_args else plugin.span))
    return tuple(found)


def build_engine(
    rules: RuleSet,
    cluster: ClusterSource,
    binder: Binder,
    clock: Clock,
    settings: Settings,
) -> Engine:
    """Compile the profiles, activate the plugins and put both into an engine.

    Pods are routed by scheduler name and team; a forced profile takes them all. Raises InvalidInputError
    where a profile or plugin cannot be used.
    """
    waiting: WaitingPods[Any] = WaitingPods()
    tables = hook_tables(rules, PluginContext(binder, clock, waiting), settings)
    router: Router
    if settings.profile is not None:
        router = ForcedProfile(tables[0].profile)
    else:
        router = ProfileRouter(rules, (table.profile for table in tables))
    options = EngineOptions(
        seed=settings.seed,
        tie_break=settings.tie_break,
        parallelism=settings.parallelism,
        percentage=settings.percentage,
        detail=settings.detail,
        rules=rules.digest,
    )
    return Engine(tables, cluster, clock, options, waiting=waiting, router=router)


def hook_tables(rules: RuleSet, context: PluginContext, settings: Settings) -> tuple[HookTable, ...]:
    """Freeze every profile, or the forced one, with the active plugins.

    Raises InvalidInputError with all that is wrong.
    """
    manager = PluginManager()
    found: list[Diagnostic] = []
    for name, args in settings.plugins.items():
        found.extend(manager.load(name, args, context))
    names = settings.profiles if settings.profile is None else (settings.profile,)
    profiles = [find_profile(rules, name) for name in names] or rules.profiles.values()
    tables: list[HookTable] = []
    for profile in profiles:
        table, problems = _freeze_profile(manager, rules, profile, settings)
        found.extend(problems)
        if table is not None:
            tables.append(table)
    if has_errors(found):
        raise InvalidInputError(found)
    return tuple(tables)


def find_profile(rules: RuleSet, name: str) -> CheckedProfile:
    """Return the profile of this qualified name, or the only one whose last word it is.

    Raises InvalidInputError where that is not one profile.
    """
    if name in rules.profiles:
        return rules.profiles[name]
    found = [profile for profile in rules.profiles.values() if profile.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"`{profile.qualified}`" for profile in found)
        problem = Diagnostic("K0301", f"several profiles are called `{name}`: {names}", where="--profile")
    else:
        known = [*rules.profiles, *(profile.name for profile in rules.profiles.values())]
        help_ = (*did_you_mean(name, known), f"profiles: {', '.join(rules.profiles)}")
        problem = Diagnostic("K0301", f"there is no profile `{name}`", where="--profile", help=help_)
    raise InvalidInputError([problem])


def _freeze_profile(
    manager: PluginManager, rules: RuleSet, profile: CheckedProfile, settings: Settings
) -> tuple[HookTable | None, tuple[Diagnostic, ...]]:
    """Register the rules of a profile like any plugin, and freeze them in the profile's order."""
    compiled = compile_profile(rules, profile, settings.probe)
    found: list[Diagnostic] = []
    rule_plugins: tuple[PredicatePlugin | TightenedPlugin | ScorePlugin | QueuePlugin, ...]
    rule_plugins = (*compiled.predicates, *compiled.scores, compiled.queue)
    for plugin in rule_plugins:
        found.extend(manager.register(plugin, plugin.name, key=plugin.key))
    predicates = (plugin.key for plugin in compiled.predicates)
    scores = (plugin.key for plugin in compiled.scores)
    order = ProfileOrder(
        name=profile.qualified,
        scheduler=profile.scheduler,
        predicates=tuple(rule.plugin or next(predicates) for rule in profile.predicates),
        scores=tuple((entry.score.plugin or next(scores), entry.weight) for entry in profile.scores),
        queue=compiled.queue.key,
        plugins=tuple(settings.plugins),
    )
    table, problems = freeze(manager, order)
    return table, (*found, *problems)

"""A configuration with its rules and plugins: its settings, and the mistakes in all of them together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kdsl.analysis.codes import CostCode
from kdsl.analysis.cost.profiles import CostLimits, over_limits
from kdsl.base.diagnostic import Diagnostic, Severity, has_errors
from kdsl.base.disk_cache import DiskCache
from kdsl.base.errors import InvalidInputError
from kdsl.base.installed import installed_plugins
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedProfile, ExternalFn, RuleSet
from kdsl.check.model.traversal import expressions_of, walk
from kdsl.check.model.typed import CallFn
from kdsl.check.names.externals import PLUGINS, Externals, rule_name
from kdsl.check.views.view import load_views
from kdsl.config.codes import ConfigCode
from kdsl.config.configuration import ConfigurationResult, KdslConfiguration, Limits
from kdsl.cycle.decision import TieBreak
from kdsl.cycle.search import ALL_NODES
from kdsl.eval.scalar.meter import Steps
from kdsl.hooks.doctor import examine, examine_rules
from kdsl.hooks.extensions import PLACED_HOOKS, bring, check_version
from kdsl.hooks.guard import Guard, HookTimes
from kdsl.hooks.manager import declared_hooks, import_plugin
from kdsl.hooks.specs import Backoff
from kdsl.lang.choices import RuleKind
from kdsl.lang.discovery import NO_DRAFTS, Drafts
from kdsl.profiles import profiles_in_use, qualified_profile
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.checking import check_rules
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, libraries, shipped_rules
from kdsl.settings import Settings

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
        found.append(Diagnostic(CheckCode.UNKNOWN_NAME, _NO_PROFILE, where=where, help=(_A_PROFILE,)))
    if rules is not None and not has_errors(found):
        found += _unread_percentage(configuration, rules)
        found += _unplaced(configuration, rules)
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
    if not any(each is not None and each.reads_percentage for each in samples):
        title = "no profile reads percentageOfNodesToScore in its `sample`"
        help_ = ("extend `kubernetes.v1_36.default`, or write a `sample` that reads it",)
        span = configuration.percentage_span
        yield Diagnostic(ConfigCode.NO_EFFECT, title, span, "has no effect", Severity.WARNING, help=help_)


def _unplaced(configuration: KdslConfiguration, rules: RuleSet) -> Iterator[Diagnostic]:
    """Warn of plugins that filter or score nodes, and that no profile adds: these hooks never run.

    Who calls a plugin's functions, or reads its fields, may want nothing else of it.
    """
    profiles = profiles_in_use(rules, configured(configuration))
    placed = {rule.plugin for profile in profiles for rule in profile.predicates}
    placed |= {rule.score.plugin for profile in profiles for rule in profile.scores}
    installed = {plugin.name: plugin for plugin in installed_plugins()}
    called: set[str] | None = None
    for plugin in configuration.plugins or ():
        if plugin.name in placed or plugin.name not in installed:
            continue
        hooks = declared_hooks(installed[plugin.name]) or frozenset()
        idle = [(kind, hooks.intersection(wanted)) for kind, wanted in PLACED_HOOKS.items()]
        kinds = [kind for kind, names in idle if names]
        if not kinds:
            continue
        if called is None:
            called = _called(profiles, rules)
        if plugin.name not in called:
            title = f"no profile in use adds the {' or '.join(kinds)} of plugin `{plugin.name}`"
            why = f"`{'`, `'.join(sorted(name for _, names in idle for name in names))}` will not run"
            help_ = tuple(
                f"write `add {kind} {PLUGINS}.{rule_name(plugin.name)}"
                f"{' weight 1' if kind is RuleKind.SCORE else ''}` in a profile"
                for kind in kinds
            )
            yield Diagnostic(ConfigCode.NO_EFFECT, title, plugin.span, why, Severity.WARNING, help=help_)


def _called(profiles: Collection[CheckedProfile], rules: RuleSet) -> set[str]:
    """Return the plugins whose functions or fields are used by profiles, teams and devices."""
    found: set[str] = set()
    names: set[str] = set()
    left = [*expressions_of([*profiles, rules.teams, rules.devices])]
    while left:
        new = {part.fn for part in walk(left.pop()) if isinstance(part, CallFn)} - names
        names |= new
        for fn in map(rules.fns.get, sorted(new)):
            if isinstance(fn, ExternalFn):
                found.add(fn.plugin)
            elif fn is not None:
                left.append(fn.body)
    return found


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
    yield from over_limits(rules, CostLimits(limits.rule_cost, limits.profile_cost), load_views())

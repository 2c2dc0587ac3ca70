"""The composition root: rule files to a running engine. The only place that knows every layer of the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kdsl.base.clock import Clock
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.check.checker import check_program
from kdsl.check.model import CheckedProfile, RuleSet
from kdsl.cycle.decision import Detail, TieBreak
from kdsl.cycle.engine import Engine, EngineOptions
from kdsl.cycle.ports import ClusterSource
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import Binder, PluginContext
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.table import HookTable, ProfileOrder, freeze
from kdsl.lang.loader import load_rules
from kdsl.plan.hookimpls import PredicatePlugin, QueuePlugin, ScorePlugin, compile_profile

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


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run.

    `profile` forces one profile for the pods of every scheduler; `plugins` are active with these arguments.
    """

    profile: str | None = None
    seed: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    parallelism: int = 1
    percentage: int = 0
    detail: Detail = Detail.SUMMARY
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: DEFAULT_PLUGINS)


def shipped_rules() -> Path:
    """Return the folder of the shipped rules: inside an installed package, or beside it in a checkout.

    Below the current folder it is a relative path, as verdicts show it.
    """
    package = Path(__file__).parent
    installed = package / "shipped_rules"
    folder = installed if installed.is_dir() else package.parent / "rules"
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def check_rules(paths: Sequence[Path | str]) -> CheckedRules:
    """Load and check the rule files of `paths`.

    Packages that they import and do not hold come from the shipped rules.
    """
    loaded = load_rules(paths, library=(shipped_rules(),))
    files = len(loaded.program.files)
    if has_errors(loaded.diagnostics):
        return CheckedRules(None, loaded.diagnostics, files)
    checked = check_program(loaded.program)
    return CheckedRules(checked.rules, (*loaded.diagnostics, *checked.diagnostics), files)


def build_engine(
    rules: RuleSet,
    cluster: ClusterSource,
    binder: Binder,
    clock: Clock,
    settings: Settings,
    schedulers: Iterable[str] = (),
) -> Engine:
    """Compile the profiles, activate the plugins and put both into an engine.

    With a forced profile it answers for all `schedulers` (names that pods ask for) besides its own. Raises
    InvalidInputError where a profile or plugin cannot be used.
    """
    waiting: WaitingPods[Any] = WaitingPods()
    tables = hook_tables(rules, PluginContext(binder, clock, waiting), settings)
    if settings.profile is not None:
        names = {tables[0].scheduler, *schedulers}
        tables = tuple(replace(tables[0], scheduler=name) for name in sorted(names))
    options = EngineOptions(
        seed=settings.seed,
        tie_break=settings.tie_break,
        parallelism=settings.parallelism,
        percentage=settings.percentage,
        detail=settings.detail,
        rules=rules.digest,
    )
    return Engine(tables, cluster, clock, options, waiting=waiting)


def hook_tables(rules: RuleSet, context: PluginContext, settings: Settings) -> tuple[HookTable, ...]:
    """Freeze every profile, or the forced one, with the active plugins.

    Raises InvalidInputError with all that is wrong.
    """
    manager = PluginManager()
    found: list[Diagnostic] = []
    for name, args in settings.plugins.items():
        found.extend(manager.load(name, args, context))
    profiles = (
        rules.profiles.values() if settings.profile is None else (find_profile(rules, settings.profile),)
    )
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
    compiled = compile_profile(rules, profile)
    found: list[Diagnostic] = []
    rule_plugins: tuple[PredicatePlugin | ScorePlugin | QueuePlugin, ...]
    rule_plugins = (*compiled.predicates, *compiled.scores, compiled.queue)
    for plugin in rule_plugins:
        found.extend(manager.register(plugin, plugin.name, key=plugin.key))
    order = ProfileOrder(
        name=profile.qualified,
        scheduler=profile.scheduler,
        predicates=tuple(plugin.key for plugin in compiled.predicates),
        scores=tuple((plugin.key, plugin.weight) for plugin in compiled.scores),
        queue=compiled.queue.key,
        plugins=tuple(settings.plugins),
    )
    table, problems = freeze(manager, order)
    return table, (*found, *problems)

"""Hook tables of checked profiles: rules are compiled and frozen together with the active plugins."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TypeAlias

from kdsl.base.clock import Clock, ManualClock
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.hooks.context import NO_ANNOTATIONS, PluginContext
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.room import Evictable
from kdsl.hooks.table import HookTable, ProfileOrder, freeze
from kdsl.plan.card_table import no_cards
from kdsl.plan.devices.plugin import DevicesPlugin, compile_devices
from kdsl.plan.memo.join import join
from kdsl.plan.router import DEFAULT_SCHEDULER
from kdsl.plan.rules.compiled_profile import CompiledProfile, compile_profile
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueuePlugin
from kdsl.plan.rules.score import ScorePlugin
from kdsl.rulebook.texts import PLACED_PLUGINS
from kdsl.settings import Settings

RulePlugin: TypeAlias = PredicatePlugin | ScorePlugin | QueuePlugin | PreemptionPlugin | DevicesPlugin


def hook_tables(rules: RuleSet, context: PluginContext, settings: Settings) -> tuple[HookTable, ...]:
    """Freeze every profile, or the forced one, with the active plugins.

    Raises InvalidInputError with all errors.
    """
    manager = PluginManager(settings.guard)
    found: list[Diagnostic] = []
    for name, args in {**PLACED_PLUGINS, **settings.plugins}.items():
        found.extend(manager.load(name, args, context))
    if has_errors(found):
        # Profiles would miss the plugins that failed.
        raise InvalidInputError(found)
    tables: list[HookTable] = []
    for profile in profiles_in_use(rules, settings):
        table, problems = _freeze_profile(manager, rules, profile, context, settings)
        found.extend(problems)
        if table is not None:
            own = settings.backoff
            tables.append(table if own is None else replace(table, backoff=own))
    if has_errors(found):
        raise InvalidInputError(found)
    return tuple(tables)


def devices_in_use(
    rules: RuleSet, settings: Settings, schedulers: Collection[str], clock: Clock | None = None
) -> Iterator[DevicesPlugin]:
    """Yield the devices of the forced profile, else of each active profile for one of the schedulers: first
    those that talk to device plugins.

    They are for reading cards only: they write nothing. `clock` dates the annotations that they make.
    """
    for profile in sorted(profiles_in_use(rules, settings), key=_is_for_simulations):
        if profile.sharing and (settings.profile is not None or profile.scheduler in schedulers):
            devices = compile_devices(
                rules,
                profile,
                NO_ANNOTATIONS,
                clock or ManualClock(),
                settings.steps,
                eager=settings.eager,
            )
            if devices is not None:
                yield devices


def _is_for_simulations(profile: CheckedProfile) -> bool:
    """Return whether a profile has no device with a lock or a handshake."""
    devices = profile.sharing.devices if profile.sharing else ()
    return not any(device.lock.values or device.handshake.values for device in devices)


def profiles_in_use(rules: RuleSet, settings: Settings) -> Collection[CheckedProfile]:
    """Return the profiles that settings name, all where they name none."""
    names = settings.profiles if settings.profile is None else (settings.profile,)
    return [find_profile(rules, name) for name in names] or rules.profiles.values()


def narrowed(rules: RuleSet, settings: Settings, schedulers: Collection[str]) -> Settings:
    """Return settings without the profiles that no pod of these schedulers gets.

    Compiling a profile takes time, above all one with devices.
    """
    if settings.profile is not None:
        return settings
    # A pod may also get a team's profile or the default scheduler's.
    wanted = {*schedulers, DEFAULT_SCHEDULER}
    teams = {team.profile for team in rules.teams}
    profiles = tuple(
        profile.qualified
        for profile in profiles_in_use(rules, settings)
        if profile.scheduler in wanted or profile.qualified in teams
    )
    return replace(settings, profiles=profiles) if profiles else settings


def find_profile(rules: RuleSet, name: str, where: str = "--profile") -> CheckedProfile:
    """Return the profile with this qualified name, or the only one with this last part.

    Raises InvalidInputError if there is none, or more than one; `where` is the place of the name.
    """
    return rules.profiles[qualified_profile(rules.profiles, name, where)]


def qualified_profile(profiles: Collection[str], name: str, where: str = "--profile") -> str:
    """Return the name in `profiles` that is meant, as `find_profile` does."""
    if name in profiles:
        return name
    found = [each for each in profiles if each.rpartition(".")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"`{each}`" for each in found)
        title = f"several profiles are called `{name}`: {names}"
        problem = Diagnostic(CheckCode.UNKNOWN_NAME, title, where=where, help=("write its full name",))
    else:
        known = [*profiles, *(each.rpartition(".")[2] for each in profiles)]
        listed = f"profiles: {', '.join(profiles)}" if profiles else "the rules have no profile"
        help_ = (*did_you_mean(name, known), listed)
        if "/" in name or name.endswith(".kdsl"):
            help_ = (f"this is a path: write the name of a profile, and the path as `--rules {name}`", *help_)
        problem = Diagnostic(CheckCode.UNKNOWN_NAME, f"there is no profile `{name}`", where=where, help=help_)
    raise InvalidInputError([problem])


def _freeze_profile(
    manager: PluginManager,
    rules: RuleSet,
    profile: CheckedProfile,
    context: PluginContext,
    settings: Settings,
) -> tuple[HookTable | None, tuple[Diagnostic, ...]]:
    """Register the rules of a profile like any plugin, and freeze them in the profile's order."""
    found: list[Diagnostic] = []
    devices = compile_devices(
        rules,
        profile,
        context.annotator,
        context.clock,
        settings.steps,
        settings.probe,
        context.nodes,
        settings.eager,
    )
    compiled = compile_profile(
        rules,
        profile,
        settings.probe,
        settings.steps,
        devices.inventories.cards if devices else no_cards,
    )
    preemption = compiled.preemption
    rule_plugins: list[RulePlugin] = [*compiled.predicates, *compiled.scores, compiled.queue]
    rule_plugins += [*((preemption,) if preemption else ()), *((devices,) if devices else ())]
    for plugin in rule_plugins:
        found.extend(manager.register(plugin, plugin.name, key=plugin.key, is_rule=True))
    evictable = None if preemption is None else Evictable(preemption.evictable, preemption.hint_signature)
    table, problems = freeze(manager, _order(profile, compiled, devices, settings), evictable)
    if table is not None:
        table = replace(table, rule_faults=compiled, sample_size=compiled.sample)
        if settings.probe is None:
            table = join(table, compiled)
    return table, (*found, *problems)


def _order(
    profile: CheckedProfile, compiled: CompiledProfile, devices: DevicesPlugin | None, settings: Settings
) -> ProfileOrder:
    """Return the plugins of a profile in its order: those of its rules, and those that it places itself."""
    predicates = (plugin.key for plugin in compiled.predicates)
    scores = (plugin.key for plugin in compiled.scores)
    placed = {rule.plugin for rule in profile.predicates}
    placed |= {entry.score.plugin for entry in profile.scores}
    return ProfileOrder(
        name=profile.qualified,
        scheduler=profile.scheduler,
        predicates=(
            *(rule.plugin or next(predicates) for rule in profile.predicates),
            # Devices come last: most nodes are rejected by then.
            *((devices.key,) if devices else ()),
        ),
        scores=(
            *((entry.score.plugin or next(scores), entry.weight) for entry in profile.scores),
            *(((devices.key, devices.weight),) if devices else ()),
        ),
        queue=compiled.queue.key,
        check_all=profile.check_all,
        preemption=compiled.preemption.key if compiled.preemption else "",
        plugins=tuple(name for name in settings.plugins if name not in PLACED_PLUGINS or name in placed),
    )

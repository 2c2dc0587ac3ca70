"""The composition root: builds a running engine from checked rules. It alone imports all parts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kdsl.base.clock import Clock
from kdsl.base.garbage import growing_heap
from kdsl.check.model.rule_set import RuleSet
from kdsl.config.configuration import OnInvalid
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.ports import ClusterSource, Evictor, Router, Tracer
from kdsl.cycle.waiting import WaitingPods
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
from kdsl.hooks.table import HookTable
from kdsl.plan.compile.device_conditions import CelConditions
from kdsl.plan.router import ForcedProfile, ProfileRouter
from kdsl.profiles import devices_in_use, find_profile, hook_tables, narrowed
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.checking import check_rules, check_text
from kdsl.rulebook.texts import DEFAULT_PLUGINS, PLACED_PLUGINS, Plugins, libraries, shipped_rules
from kdsl.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "DEFAULT_PLUGINS",
    "DEFAULT_SETTINGS",
    "PLACED_PLUGINS",
    "CheckedRules",
    "Plugins",
    "Scheduler",
    "Settings",
    "build_engine",
    "build_scheduler",
    "check_rules",
    "check_text",
    "devices_in_use",
    "engine_options",
    "find_profile",
    "hook_tables",
    "libraries",
    "narrowed",
    "shipped_rules",
]


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

"""The rules of a process: one rule set, or two side by side; read from files, and again after changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kdsl.app import Scheduler, devices_in_use
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.ports import Router
from kdsl.hooks.context import PluginContext
from kdsl.hooks.faults import Fault
from kdsl.live.options import CanaryOptions, RunOptions
from kdsl.live.rules.canary import CANARY, Side, side_of
from kdsl.live.watching.needs import Needs, merged, needs
from kdsl.plan.devices.inventories import Inventories


@dataclass(frozen=True, slots=True)
class RuleSets:
    """The active rules, and the resources that they read.

    `digests` are those of the rule sets by side, the canary only if there is one. `inventories` finds the
    cards of nodes for handshakes.
    """

    scheduler: Scheduler
    needs: Needs
    digests: Mapping[Side, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    inventories: Inventories | None = None


def load(options: RunOptions, context: PluginContext) -> RuleSets:
    """Read and build everything; raise InvalidInputError with all errors."""
    stable = options.sources.load(context)
    own = RuleSets(
        stable.scheduler,
        _needs(stable.scheduler, options),
        {Side.STABLE: stable.scheduler.rules.digest},
        stable.diagnostics,
        _inventories(stable.scheduler),
    )
    return own if options.canary is None else _beside(own, options.canary, options, context)


def mistakes(options: RunOptions) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of all sources that have errors; nothing is built."""
    sources = [options.sources, *([] if options.canary is None else [options.canary.sources])]
    found = (each.mistakes() for each in sources)
    return tuple(dict.fromkeys(one for each in found if has_errors(each) for one in each))


def _beside(
    stable: RuleSets, canary_options: CanaryOptions, options: RunOptions, context: PluginContext
) -> RuleSets:
    """Combine two rule sets into one scheduler."""
    loaded = canary_options.sources.load(context)
    canary, digest = loaded.scheduler, loaded.scheduler.rules.digest
    tables = tuple(replace(table, profile=table.profile + CANARY, rules=digest) for table in canary.tables)
    router = CanaryRouter(stable.scheduler.router, canary.router, canary_options.percent)
    return RuleSets(
        replace(stable.scheduler, tables=(*stable.scheduler.tables, *tables), router=router),
        merged(stable.needs, _needs(canary, options)),
        {**stable.digests, Side.CANARY: digest},
        (*stable.diagnostics, *loaded.diagnostics),
        stable.inventories or _inventories(canary),
    )


def _inventories(made: Scheduler) -> Inventories | None:
    schedulers = {table.scheduler for table in made.tables}
    devices = next(devices_in_use(made.rules, made.settings, schedulers), None)
    return None if devices is None else devices.inventories


def _needs(made: Scheduler, options: RunOptions) -> Needs:
    keeps_raw = made.settings.shows_manifests or options.record is not None
    return needs(made.rules, made.tables, keeps_raw=keeps_raw)


@dataclass(frozen=True, slots=True)
class CanaryRouter:
    """Selects the profile of a pod by its side: a `Router`."""

    stable: Router
    canary: Router
    percent: float

    def profile_of(self, pod: PodInfo) -> str | None:
        """Return the name of the profile; None if the rules of the pod's side have none for it."""
        if side_of(pod, self.percent) is Side.STABLE:
            return self.stable.profile_of(pod)
        name = self.canary.profile_of(pod)
        return None if name is None else name + CANARY

    def faults_of(self, pod: PodInfo) -> tuple[Fault, ...]:
        """Return the errors of the search for the profile."""
        router = self.stable if side_of(pod, self.percent) is Side.STABLE else self.canary
        return router.faults_of(pod)

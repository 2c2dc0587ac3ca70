"""The settings of a run: the combined result of configurations and options, for building an engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdsl.cycle.decision import Detail, TieBreak
from kdsl.eval.scalar.compiler import Probe
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.hooks.guard import Guard
from kdsl.hooks.specs import Backoff
from kdsl.rulebook.texts import DEFAULT_PLUGINS, Plugins


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run.

    `profile` forces one profile for the pods of every scheduler; otherwise `profiles` run, or all if it is
    empty. `plugins` are active with these arguments; those in `undeclared` may provide functions without
    declared reads. A `probe` observes the rules, `steps` bound them. `backoff` bounds how long pods wait
    between attempts, None for the values of each queue. The `guard` watches the hooks of plugins. An `eager`
    scheduler compiles all devices when it is built, so that no pod waits for them.
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
    guard: Guard = field(default_factory=Guard, compare=False)
    eager: bool = field(default=False, compare=False)

    @property
    def shows_manifests(self) -> bool:
        """Return whether a plugin may request objects as written: true for any but the default ones."""
        return not self.plugins.keys() <= DEFAULT_PLUGINS.keys()


DEFAULT_SETTINGS = Settings()

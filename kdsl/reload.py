"""A scheduler built from a configuration, its rules and its plugins, and built again when they change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kdsl.app import Scheduler, build_scheduler
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.disk_cache import disk_cache
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.rule_set import RuleSet
from kdsl.config.configuration import DEFAULTS, ConfigurationResult, OnInvalid, load_configuration
from kdsl.configured import check_loaded, configured
from kdsl.hooks.context import PluginContext
from kdsl.rulebook.answer import CheckedRules


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The scheduler to use from now on, and diagnostics: after errors it is the previous one."""

    scheduler: Scheduler
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a scheduler: a `configuration` file, and `rules` and `profiles` that override it.

    The defaults are the shipped rules, and all profiles of the rules. With `takes_all` a single profile gets
    all pods, regardless of their schedulerName: the named one, or the only one outside of libraries.
    """

    configuration: Path | None = None
    rules: tuple[Path, ...] = ()
    profiles: tuple[str, ...] = ()
    takes_all: bool = False

    def load(self, context: PluginContext) -> Reloaded:
        """Read and build everything; raise InvalidInputError with all errors."""
        read, checked = self._read()
        found = checked.diagnostics
        if read.configuration is None or checked.rules is None or has_errors(found):
            raise InvalidInputError(found)
        settings = replace(configured(read.configuration), eager=True)
        if self.profiles:
            settings = replace(settings, profile=None, profiles=self.profiles)
        if self.takes_all and settings.profile is None:
            names = settings.profiles or _profiles_in(self.rules or read.configuration.rules, checked.rules)
            settings = replace(settings, profile=names[0]) if len(names) == 1 else settings
        made = build_scheduler(checked.rules, context, settings)
        made = replace(made, on_invalid=read.configuration.on_invalid)
        return Reloaded(made, found)

    def mistakes(self) -> tuple[Diagnostic, ...]:
        """Return what `load` would report before it builds anything."""
        return self._read()[1].diagnostics

    def _read(self) -> tuple[ConfigurationResult, CheckedRules]:
        read = DEFAULTS if self.configuration is None else load_configuration(self.configuration)
        return read, check_loaded(read, self.rules, keep=disk_cache(os.environ))

    def named(self) -> tuple[Path, ...]:
        """Return the files and folders to read now: those of a configuration as far as it can be read."""
        if self.configuration is None:
            return self.rules
        found = load_configuration(self.configuration).readable
        return (self.configuration, *(self.rules or (() if found is None else found.rules)))


def _profiles_in(paths: Sequence[Path], rules: RuleSet) -> tuple[str, ...]:
    """Return the profiles that stand in files of these paths; libraries have others."""
    folders = [path.resolve() for path in paths]
    files = {name: Path(profile.span.source.path).resolve() for name, profile in rules.profiles.items()}
    return tuple(
        name for name, file in files.items() if any(file.is_relative_to(folder) for folder in folders)
    )


def load_scheduler(configuration: Path, context: PluginContext) -> Reloaded:
    """Read a configuration with its rules and plugins; raise InvalidInputError with all errors."""
    return Sources(configuration).load(context)


def reload(current: Scheduler, configuration: Path) -> Reloaded:
    """Read a changed configuration, or changed rules, again: completely, or not at all.

    After an error the current scheduler stays, with diagnostics; if its configuration says to exit on invalid
    rules, InvalidInputError is raised.
    """
    try:
        return load_scheduler(configuration, current.context)
    except InvalidInputError as error:
        if current.on_invalid is OnInvalid.EXIT:
            raise
        return Reloaded(current, error.diagnostics)

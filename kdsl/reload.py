"""A scheduler from a configuration file, made again when the file or its rules change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kdsl.app import Scheduler, build_scheduler, check_configuration, check_configured, configured
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.config.configuration import OnInvalid, load_configuration
from kdsl.hooks.context import PluginContext


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The scheduler to run from now on, and what was found on the way: with errors it is the one before."""

    scheduler: Scheduler
    diagnostics: tuple[Diagnostic, ...]


def load_scheduler(configuration: Path, context: PluginContext) -> Reloaded:
    """Read a configuration with its rules and plugins; raise InvalidInputError with all that is wrong."""
    read = load_configuration(configuration)
    if read.configuration is None:
        raise InvalidInputError(read.diagnostics)
    checked = check_configured(read.configuration)
    if checked.rules is None or has_errors(checked.diagnostics):
        raise InvalidInputError(checked.diagnostics)
    found = (
        *read.diagnostics,
        *checked.diagnostics,
        *check_configuration(read.configuration, checked.rules, checked.files),
    )
    if has_errors(found):
        raise InvalidInputError(found)
    made = build_scheduler(checked.rules, context, configured(read.configuration))
    return Reloaded(replace(made, on_invalid=read.configuration.on_invalid), found)


def reload(current: Scheduler, configuration: Path) -> Reloaded:
    """Read a configuration again, which has changed, or whose rules have: all of it holds then, or nothing.

    Where something is wrong the current scheduler stays, and the diagnostics say why; if it was told to exit
    on what is invalid, InvalidInputError is raised.
    """
    try:
        return load_scheduler(configuration, current.context)
    except InvalidInputError as error:
        if current.on_invalid is OnInvalid.EXIT:
            raise
        return Reloaded(current, error.diagnostics)

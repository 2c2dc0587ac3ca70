"""Checks plugins without running them, and reports all problems at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from kdsl.base.containment import ForeignError, contain
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.installed import installed_rules
from kdsl.check.views.view import Views
from kdsl.config.configuration import ConfiguredPlugin
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.extensions import bring, check_version
from kdsl.hooks.manager import PluginManager, import_plugin

_IF_CONFIGURED = frozenset((PluginCode.SAME_NAME, PluginCode.UNDECLARED))
"""Codes that are errors only in combination with a configuration."""


def examine(
    names: Collection[str], views: Views, configured: Mapping[str, ConfiguredPlugin] | None = None
) -> tuple[Diagnostic, ...]:
    """Import plugins and check imports, schemas, hooks, manifests, versions and names.

    Plugins are not built. Arguments are checked for `configured` plugins; where that is None, errors that
    need a configuration are warnings.
    """
    found: list[Diagnostic] = []
    for name in names:
        found += _examine(name, (configured or {}).get(name))
    allowed = [name for name, plugin in (configured or {}).items() if plugin.allow_undeclared]
    for problem in bring(names, views, allowed)[1]:
        is_warning = configured is None and problem.code in _IF_CONFIGURED
        found.append(replace(problem, severity=Severity.WARNING) if is_warning else problem)
    return tuple(found)


def examine_rules() -> Iterator[Diagnostic]:
    """Yield a diagnostic for each installed rule package whose folder does not exist."""
    for rules in installed_rules():
        if rules.folder is None:
            title = f"rule package `{rules.name}` of `{rules.distribution}` is not there"
            why = f"`{rules.target}` is no package with a folder"
            yield Diagnostic(PluginCode.NO_RULES, title, where=f"kdsl.rules.{rules.name}", notes=(why,))


def _examine(name: str, configured: ConfiguredPlugin | None) -> Iterator[Diagnostic]:
    if configured is None:
        factory, problems = import_plugin(name, {})
        problems = tuple(each for each in problems if each.code != PluginCode.BAD_ARGUMENT)
    else:
        factory, problems = import_plugin(name, configured.args, configured.place)
        yield from check_version(name, configured.requires)
    yield from problems
    if isinstance(factory, type):
        try:
            # An object made without its constructor has the methods of any other.
            unbuilt: object = contain(lambda: object.__new__(factory))
        except ForeignError as error:
            title = f"plugin `{name}` cannot be built: {error}"
            yield Diagnostic(PluginCode.NOT_BUILT, title, where=f"plugins.{name}")
            return
        yield from PluginManager().register(unbuilt, name)

"""The functions, fields and rules of installed plugins, for the checker. Only active plugins are imported.

Every error in a plugin is a diagnostic that names it.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import kdsl
from kdsl.base.containment import ForeignError, contain
from kdsl.base.diagnostic import Diagnostic, nearest
from kdsl.base.installed import InstalledPlugin, installed_plugins
from kdsl.check.model.rule_set import ExternalFn
from kdsl.check.names.externals import PLUGINS, SERVABLE, ExternalField, ExternalRule, Externals, rule_name
from kdsl.check.views.view import Field, Views
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.manager import declared_hooks, not_installed
from kdsl.hooks.manifest import Brought, Manifest, read_manifest
from kdsl.hooks.requirement import satisfies
from kdsl.hooks.table import FILTER_HOOKS, SCORE_HOOKS
from kdsl.lang.choices import RuleKind

PLACED_HOOKS: Final = {RuleKind.PREDICATE: FILTER_HOOKS, RuleKind.SCORE: SCORE_HOOKS}
"""The hooks that run where a profile places a plugin, by the kind of rule that it serves as."""


def bring(
    active: Collection[str], views: Views, undeclared: Collection[str] = ()
) -> tuple[Externals, tuple[Diagnostic, ...]]:
    """Return the functions, fields and rules of the plugins; `active` names the active plugins.

    Plugins named in `undeclared` may have functions without declared reads. For an active name that no plugin
    has, the nearest plugin is taken, by its manifest alone: it is not imported.
    """
    installed = installed_plugins()
    plugins = {plugin.name: plugin for plugin in installed}
    absent = [name for name in dict.fromkeys(active) if name not in plugins]
    found = [not_installed(name, installed) for name in absent]
    meant = {plugin.name: plugin for plugin in _meant(absent, plugins, active)}
    chosen = [plugins[name] for name in dict.fromkeys(active) if name in plugins]
    found += _clashes(chosen)
    fns, fields = _provided(chosen, views, undeclared, found)
    for brought, fn in _declared(meant.values(), views):
        if brought.view:
            fields.setdefault((brought.view, brought.name), ExternalField(_field(brought, fn), fn))
        else:
            fns.setdefault(fn.qualified, fn)
    # If two plugins have the same name in rules, the active one counts.
    rules = sorted(
        (
            ExternalRule(name, name in active or name in meant, _kinds(plugin, active, meant))
            for name, plugin in plugins.items()
        ),
        key=lambda rule: rule.is_active,
    )
    versions = tuple(
        f"{plugin.name}={plugin.version}" for plugin in sorted(chosen, key=lambda each: each.name)
    )
    externals = Externals(
        {rule.name: rule for rule in rules},
        fns,
        tuple(fields.values()),
        versions,
        frozenset(map(rule_name, absent)),
    )
    return externals, tuple(found)


def _provided(
    plugins: Iterable[InstalledPlugin], views: Views, undeclared: Collection[str], found: list[Diagnostic]
) -> tuple[dict[str, ExternalFn], dict[tuple[str, str], ExternalField]]:
    """Return the functions of active plugins by qualified name, and their fields by view and name."""
    fns: dict[str, ExternalFn] = {}
    fields: dict[tuple[str, str], ExternalField] = {}
    for plugin in plugins:
        manifest, problems = read_manifest(plugin, views)
        found += (*problems, *_requirement(plugin, manifest))
        if plugin.name not in undeclared:
            found += _undeclared(plugin, manifest.brought)
        for brought in manifest.brought:
            call = _imported(plugin, brought, found)
            if call is None:
                continue
            fn = _external(plugin, brought, call)
            if not brought.view:
                fns[fn.qualified] = fn
                continue
            key = (brought.view, brought.name)
            if key in fields:
                first = fields[key].fn.plugin
                title = f"brings the field `{brought.view}.{brought.name}`, as `{first}` does"
                found.append(_problem(PluginCode.SAME_NAME, plugin, title))
            fields.setdefault(key, ExternalField(_field(brought, fn), fn))
    return fns, fields


def _meant(
    absent: Iterable[str], plugins: Mapping[str, InstalledPlugin], active: Collection[str]
) -> Iterator[InstalledPlugin]:
    """Yield the plugins with the names nearest to misspelled ones, unless they are active themselves."""
    for name in absent:
        near = nearest(name, plugins)
        if near is not None and near not in active:
            yield plugins[near]


def _declared(plugins: Iterable[InstalledPlugin], views: Views) -> Iterator[tuple[Brought, ExternalFn]]:
    """Yield the declarations of plugins from their manifests alone: types to check rules with, without
    functions.
    """
    for plugin in plugins:
        for brought in read_manifest(plugin, views)[0].brought:
            yield brought, _external(plugin, brought, _not_called)


def _not_called(*_: object) -> Any:
    raise AssertionError("rules that use a plugin which is not active do not run")


def check_version(name: str, requirement: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic where an installed plugin does not meet the required version; "" requires none."""
    offers = [plugin for plugin in installed_plugins() if plugin.name == name]
    # Of several none is chosen.
    for plugin in offers if len(offers) == 1 else ():
        if requirement and not _fits(plugin.version, requirement):
            title = f"is {plugin.distribution} {plugin.version}, required is {requirement}"
            yield _problem(PluginCode.VERSION, plugin, title, ("install a version that fits",))


def _fits(version: str, requirement: str) -> bool:
    try:
        return satisfies(version, requirement)
    except ValueError:
        return False  # a distribution without a version, or with an invalid one


def _external(plugin: InstalledPlugin, brought: Brought, call: Any) -> ExternalFn:
    # The slash keeps rules from calling a field by the name of its function.
    name = f"/{brought.view}.{brought.name}" if brought.view else f".{brought.name}"
    qualified = f"{PLUGINS}.{rule_name(plugin.name)}{name}"
    return ExternalFn(qualified, plugin.name, brought.args, brought.result, brought.reads, brought.cost, call)


def _field(brought: Brought, fn: ExternalFn) -> Field:
    return Field(brought.name, brought.view, brought.result, brought.reads, False, brought.doc, fn.qualified)


def _imported(plugin: InstalledPlugin, brought: Brought, found: list[Diagnostic]) -> Any:
    """Import a function of a manifest; None with a diagnostic where that fails."""
    module, _, name = brought.target.partition(":")
    try:
        call = contain(lambda: getattr(importlib.import_module(module), name))
    except ForeignError as error:
        reason = str(error)
    else:
        if callable(call):
            return call
        reason = f"it is {type(call).__name__}, not a function"
    title = f"`{brought.target}` of plugin `{plugin.name}` cannot be imported: {reason}"
    found.append(Diagnostic(PluginCode.NO_FUNCTION, title, brought.span, where=f"{PLUGINS}.{plugin.name}"))
    return None


def _kinds(plugin: InstalledPlugin, active: Collection[str], meant: Collection[str]) -> frozenset[RuleKind]:
    """Return the kinds of rules as which an active plugin can be placed: all where only building it would
    show.
    """
    if plugin.name in meant:
        return SERVABLE
    if plugin.name not in active:
        return frozenset()
    hooks = declared_hooks(plugin)
    if hooks is None:
        return SERVABLE
    return frozenset(kind for kind, wanted in PLACED_HOOKS.items() if not hooks.isdisjoint(wanted))


def _requirement(plugin: InstalledPlugin, manifest: Manifest) -> Iterator[Diagnostic]:
    if manifest.requires and not satisfies(kdsl.__version__, manifest.requires):
        title = f"needs kdsl {manifest.requires}, this is {kdsl.__version__}"
        yield _problem(PluginCode.VERSION, plugin, title, ("install a version of the plugin that fits",))


def _undeclared(plugin: InstalledPlugin, brought: Iterable[Brought]) -> Iterator[Diagnostic]:
    names = [each.name for each in brought if not each.is_declared]
    if names:
        listed = ", ".join(f"`{name}`" for name in names)
        help_ = (
            "a manifest declares `pure: true` and `reads: […]`",
            "`allowUndeclared: true` beside the plugin's name allows it; then nothing is remembered",
        )
        yield _problem(PluginCode.UNDECLARED, plugin, f"does not declare the reads of {listed}", help_)


def _clashes(plugins: Iterable[InstalledPlugin]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each active plugin whose name in rule files is taken."""
    named: defaultdict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in plugins:
        named[rule_name(plugin.name)].append(plugin)
    for name, (first, *others) in named.items():
        for other in others:
            title = f"is `{PLUGINS}.{name}` in rule files, as `{first.name}` is"
            yield _problem(PluginCode.SAME_NAME, other, title, ("activate one of the two",))


def _problem(
    code: PluginCode, plugin: InstalledPlugin, title: str, help_: tuple[str, ...] = ()
) -> Diagnostic:
    return Diagnostic(code, f"plugin `{plugin.name}` {title}", where=f"{PLUGINS}.{plugin.name}", help=help_)

"""Registers and checks plugins. The composition root owns one manager.

Compiled rules and third-party plugins pass through the same `register`. Every error in a plugin is a
diagnostic of the range K10 that names it; the plugin is then left out and the others stay:

K1001 not installed, K1002 cannot be imported, K1003 unusable argument schema, K1004 argument does not fit,
K1005 cannot be built, K1006 unknown hook, K1007 wrong arguments of a hook, K1008 hook wrapper, K1009
registered twice, K1010 no hooks, K1011 offered by several distributions, K1016 an ordering option that has no
effect. `table` adds K1012 to K1015 and K1023.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, cast

import pluggy

from kdsl.base.containment import ForeignError, contain
from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean, has_errors
from kdsl.base.installed import InstalledPlugin, installed_plugins
from kdsl.hooks.answers import answering
from kdsl.hooks.arguments import Placed, check_args
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.context import PluginContext
from kdsl.hooks.guard import Guard
from kdsl.hooks.specs import PROJECT, SchedulingHooks

Hook = Callable[..., Any]

MAX_CLASSES: Final = 256
"""The most classes of plugins whose attributes are known."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A plugin that passed the checks: `key` is unique, `name` is the name in verdicts.

    `hooks` take their arguments by position, in the order of the specs. `guard` wraps them, None for compiled
    rules. Where it `is_limited`, hooks without side effects are abandoned after the time limit. A plugin that
    is `only_for` some fields of a pod skips pods in which they are all empty, and does nothing for them.
    """

    key: str
    name: str
    hooks: Mapping[str, Hook]
    guard: Guard | None = None
    is_limited: bool = False
    only_for: tuple[str, ...] = ()

    def hook(self, point: str) -> Hook:
        """Return a hook as the cycle calls it: contained, and with checked answers."""
        hook = self.hooks[point]
        if self.guard is None:
            return hook
        return self.guard.around(
            self.name, point, answering(point, hook, self.name), is_limited=self.is_limited
        )

    def optional_hook(self, point: str) -> Hook | None:
        """Return a hook as `hook` does, None if the plugin does not have it."""
        return self.hook(point) if point in self.hooks else None

    def over_nodes(self, point: str, adapt: Callable[[Hook], Hook]) -> Hook:
        """Convert a hook for one node to a hook for a set of nodes."""
        hook = self.hooks[point]
        if self.guard is None:
            return adapt(hook)
        each = answering(point, hook, self.name)
        return self.guard.around(self.name, point, adapt(each), is_limited=self.is_limited)


class NoHooks:
    """A plugin without hooks: it only adds functions and fields to rule files."""

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        pass


class _Pluggy(pluggy.PluginManager):
    """A manager that reads the attributes of each class once: most plugins are rules, of few classes."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        own, kind = getattr(plugin, "__dict__", {}), cast(Any, type(plugin))
        if name in own:
            # Most attributes are data, which `callable` finds much faster.
            is_unmarked = not callable(own[name]) or not inspect.isroutine(own[name])
        else:
            is_unmarked = name in _unmarked(kind)
        return None if is_unmarked else super().parse_hookimpl_opts(plugin, name)


@lru_cache(MAX_CLASSES)
def _unmarked(kind: type[object]) -> frozenset[str]:
    """Return the attributes of a class that are hooks of none of its objects."""
    reader = pluggy.PluginManager(PROJECT)
    # An object may have a function in a slot.
    return frozenset(
        name
        for name in dir(kind)
        if reader.parse_hookimpl_opts(kind, name) is None
        and not inspect.ismemberdescriptor(inspect.getattr_static(kind, name, None))
    )


class PluginManager:
    """The plugins of one scheduler, in the order of their registration."""

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard or Guard()
        self._pluggy = _Pluggy(PROJECT)
        self._pluggy.add_hookspecs(SchedulingHooks)
        self._registrations: dict[str, Registration] = {}
        # Reading the list of installed plugins takes longer than importing one.
        self._installed: tuple[InstalledPlugin, ...] | None = None

    def register(
        self,
        plugin: object,
        name: str,
        *,
        key: str = "",
        is_rule: bool = False,
        is_limited: bool = False,
        only_for: tuple[str, ...] = (),
    ) -> tuple[Diagnostic, ...]:
        """Register a plugin under `key` (by default its name); a diagnostic that is an error keeps it out.

        `is_rule` marks a compiled rule, or a plugin of kdsl's own that never waits: its hooks are not
        wrapped.
        """
        key = key or name
        if key in self._registrations:
            return (_diagnostic(PluginCode.REGISTERED_TWICE, name, "is registered twice"),)
        try:
            found, hooks = contain(self._take_in, plugin, name, key)
        except ForeignError as error:
            return (_diagnostic(PluginCode.NOT_REGISTERED, name, f"cannot be registered: {error}"),)
        if not has_errors(found):
            guard = None if is_rule else self._guard
            self._registrations[key] = Registration(
                key, name, MappingProxyType(hooks), guard, is_limited, only_for
            )
        return found

    def _take_in(self, plugin: object, name: str, key: str) -> tuple[tuple[Diagnostic, ...], dict[str, Hook]]:
        """Check a plugin and return its hooks. Reading a plugin's attributes runs its code."""
        found = tuple(self._check(plugin, name))
        if has_errors(found):
            return found, {}
        self._pluggy.register(plugin, key)
        return found, self._hooks_of(plugin)

    def load(self, name: str, args: Mapping[str, Any], context: PluginContext) -> tuple[Diagnostic, ...]:
        """Import, configure and register the installed plugin `name`; its exceptions are not raised."""
        if self._installed is None:
            self._installed = installed_plugins()
        factory, misfits = import_plugin(name, args, installed=self._installed)
        if factory is None or misfits:
            return misfits
        try:
            plugin = contain(factory, args, context)
        except ForeignError as error:
            return (_diagnostic(PluginCode.NOT_BUILT, name, f"cannot be built: {error}"),)
        # kdsl's own plugins have their own limits where they wait.
        is_own = any(each.name == name and each.distribution == PROJECT for each in self._installed)
        # Plugins that never wait are called for every pod, and need a guard no more than rules do.
        is_local = is_own and getattr(plugin, "IS_LOCAL", False)
        only_for = getattr(plugin, "ONLY_FOR", ()) if is_local else ()
        return self.register(plugin, name, is_rule=is_local, is_limited=not is_own, only_for=only_for)

    def get(self, key: str) -> Registration | None:
        return self._registrations.get(key)

    def registered(self) -> tuple[str, ...]:
        """Return the keys of all registered plugins in the order of registration."""
        return tuple(self._registrations)

    def _check(self, plugin: object, name: str) -> Iterator[Diagnostic]:
        marked = [
            (attribute, self._pluggy.parse_hookimpl_opts(plugin, attribute))
            for attribute in dir(plugin)
            if not attribute.startswith("__")
        ]
        hooks = [(attribute, options) for attribute, options in marked if options is not None]
        if not hooks and not isinstance(plugin, NoHooks):
            yield _diagnostic(
                PluginCode.NO_HOOKS, name, "has no hooks", ("mark its methods with `kdsl.hooks.hookimpl`",)
            )
        for attribute, options in hooks:
            point = options.get("specname") or attribute
            caller = getattr(self._pluggy.hook, point, None)
            if caller is None:
                yield _diagnostic(
                    PluginCode.UNKNOWN_HOOK,
                    name,
                    f"implements the unknown hook `{point}`",
                    did_you_mean(point, hook_names()),
                )
                continue
            if options.get("wrapper") or options.get("hookwrapper"):
                yield _diagnostic(
                    PluginCode.WRAPS_HOOK, name, f"wraps the hook `{point}`, which kdsl does not support"
                )
                continue
            if options.get("tryfirst") or options.get("trylast"):
                title = f"asks for a place in the order of `{point}`, which only the profile decides"
                yield _diagnostic(PluginCode.SETS_ORDER, name, title, severity=Severity.WARNING)
            yield from _check_arguments(name, point, getattr(plugin, attribute))

    def _hooks_of(self, plugin: object) -> dict[str, Hook]:
        found: dict[str, Hook] = {}
        for caller in self._pluggy.get_hookcallers(plugin) or ():
            impl = next(impl for impl in caller.get_hookimpls() if impl.plugin is plugin)
            found[caller.name] = _positional(impl.function, tuple(impl.argnames), hook_arguments(caller.name))
        return found


def import_plugin(
    name: str,
    args: Mapping[str, Any],
    placed: Placed = lambda path: None,
    installed: Sequence[InstalledPlugin] | None = None,
) -> tuple[Callable[..., object] | None, tuple[Diagnostic, ...]]:
    """Import the factory of the installed plugin `name`, None where that fails, and check `args` for it.

    `placed` returns the place of each argument, `installed` are all installed plugins, where that list
    exists.
    """
    installed = installed_plugins() if installed is None else installed
    offers = [plugin for plugin in installed if plugin.name == name]
    if not offers:
        return None, (not_installed(name, installed),)
    if len(offers) > 1:
        rivals = " and ".join(f"`{plugin.distribution}`" for plugin in offers)
        help_ = ("uninstall all but one of them",)
        return None, (_diagnostic(PluginCode.SEVERAL_OFFERS, name, f"is offered by {rivals}", help_),)
    (chosen,) = offers
    if not chosen.is_well_formed:
        title = f"cannot be imported: its entry point `{chosen.target}` is no `module:attribute`"
        return None, (_diagnostic(PluginCode.NOT_IMPORTED, name, title),)
    try:
        factory: Callable[..., object] = contain(chosen.entry_point.load)
        is_buildable = not isinstance(factory, type) or contain(_takes_two, factory)
    except ForeignError as error:
        return None, (_diagnostic(PluginCode.NOT_IMPORTED, name, f"cannot be imported: {error}"),)
    if not is_buildable:
        title, help_ = "cannot be built", ("its constructor must take `args` and `context`",)
        return None, (_diagnostic(PluginCode.NOT_BUILT, name, title, help_),)
    if not chosen.attribute:
        # A module: the plugin has only the functions of its manifest, and nothing is built.
        factory = NoHooks
    return factory, check_args(chosen, args, placed)


def _takes_two(factory: type) -> bool:
    """Return whether a class can be called with two arguments, as far as can be known."""
    try:
        # Of a decorated constructor, the decorator's function is called.
        signature = inspect.signature(factory, follow_wrapped=False)
    except (TypeError, ValueError):
        return True  # a class without a signature, or with a broken one
    try:
        signature.bind({}, None)
    except TypeError:
        return False
    return True


def not_installed(name: str, installed: Iterable[InstalledPlugin]) -> Diagnostic:
    """Return the diagnostic of a name that no installed plugin has."""
    help_ = did_you_mean(name, (plugin.name for plugin in installed))
    return _diagnostic(PluginCode.NOT_INSTALLED, name, "is not installed", help_)


def declared_hooks(plugin: InstalledPlugin) -> frozenset[str] | None:
    """Import a plugin and return the hooks that its class marks; empty where it is data alone.

    None where they cannot be determined: the import fails, or the factory is not a class.
    """
    if not plugin.attribute:
        return frozenset()
    try:
        return contain(_marked_hooks, plugin)
    except ForeignError:
        return None  # the caller that loads the plugin reports the error


def _marked_hooks(plugin: InstalledPlugin) -> frozenset[str] | None:
    factory = plugin.entry_point.load()
    if not isinstance(factory, type):
        return None
    reader = pluggy.PluginManager(PROJECT)
    marked = ((each, reader.parse_hookimpl_opts(factory, each)) for each in dir(factory))
    return frozenset(options.get("specname") or each for each, options in marked if options is not None)


def hook_names() -> tuple[str, ...]:
    """Return the names of all hooks in the order of a pod's way through them."""
    return tuple(name for name in vars(SchedulingHooks) if not name.startswith("_"))


@cache
def hook_arguments(point: str) -> tuple[str, ...]:
    """Return the names of a hook's arguments in order."""
    return tuple(inspect.signature(getattr(SchedulingHooks, point)).parameters)[1:]


def _check_arguments(name: str, point: str, function: Hook) -> Iterator[Diagnostic]:
    expected = hook_arguments(point)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if _lacks_self(function, expected):
        first = "cls" if inspect.isclass(cast(Any, function).__self__) else "self"
        title = f"declares the hook `{point}` without `{first}`"
        written = f"def {function.__name__}({', '.join((first, *_names(function)))})"
        yield _diagnostic(PluginCode.NOT_REGISTERED, name, title, (f"write `{written}`",))
        return
    takes = f"the hook may take {', '.join(f'`{argument}`' for argument in expected)}"
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in expected:
            title = f"declares an argument `{parameter.name}` that the hook `{point}` does not have"
            help_ = (*did_you_mean(parameter.name, expected), takes)
            yield _diagnostic(PluginCode.NOT_REGISTERED, name, title, help_)
        elif parameter.kind not in positional or parameter.default is not inspect.Parameter.empty:
            # pluggy would never pass it, and the plugin would always use the default.
            title = f"declares the argument `{parameter.name}` of hook `{point}` as optional or keyword-only"
            yield _diagnostic(PluginCode.NOT_REGISTERED, name, title, (f"write `{parameter.name}` alone",))


def _lacks_self(function: Hook, expected: tuple[str, ...]) -> bool:
    """Return whether the object of a method goes to the first argument of the hook, or to none."""
    if not inspect.ismethod(function):
        return False
    names = _names(function)
    return not names or names[0] in expected


def _names(function: Hook) -> tuple[str, ...]:
    """Return the parameters of a method as it is written."""
    return tuple(inspect.signature(cast(Any, function).__func__).parameters)


def _positional(function: Hook, declared: tuple[str, ...], expected: tuple[str, ...]) -> Hook:
    """Return `function` with all expected arguments in order: pluggy allows a plugin to omit some."""
    if declared == expected:
        return function
    count, places = len(declared), tuple(expected.index(argument) for argument in declared)
    if declared == expected[:count]:
        return lambda *values: function(*values[:count])
    if count == 1:
        (place,) = places
        return lambda *values: function(values[place])
    chosen = itemgetter(*places)
    return lambda *values: function(*chosen(values))


def _diagnostic(
    code: PluginCode,
    plugin: str,
    title: str,
    help_: tuple[str, ...] = (),
    *,
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    return Diagnostic(
        code, f"plugin `{plugin}` {title}", severity=severity, where=f"plugins.{plugin}", help=help_
    )

"""Features that a kube-scheduler profile uses and kdsl does not have: one warning for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode
from kdsl.config.kube_arguments import Arguments, seconds
from kdsl.config.kube_plugins import MULTI_POINT_KEY, PLUGINS, WITHOUT_RULES, ExtensionPoint
from kdsl.config.kube_points import Enabled, PluginSet

_HALVES: Final = (
    (ExtensionPoint.PRE_FILTER, ExtensionPoint.FILTER, attrgetter("predicate")),
    (ExtensionPoint.FILTER, ExtensionPoint.PRE_FILTER, attrgetter("predicate")),
    (ExtensionPoint.SCORE, ExtensionPoint.PRE_SCORE, attrgetter("score")),
)
"""Points of which the first makes little sense without the second, and the rule that implements both.
`preScore` alone has no effect.
"""
_WHOLE: Final[Mapping[str, ExtensionPoint]] = {
    "VolumeBinding": ExtensionPoint.FILTER,
    "DynamicResources": ExtensionPoint.FILTER,
}
"""Plugins of kdsl that run at all their points if they run at this one."""
_TIMEOUTS: Final[Mapping[tuple[str, str], float]] = {
    ("VolumeBinding", "bindTimeoutSeconds"): 600,
    ("DynamicResources", "filterTimeout"): 10,
    ("DynamicResources", "bindingTimeout"): 600,
}


def check_gaps(
    enabled: Enabled, sets: Mapping[str, PluginSet], arguments: Arguments, place: Span
) -> Iterator[Diagnostic]:
    """Yield a warning for each part of a profile without a counterpart; `place` is the place of the
    profile.
    """
    for point, other, rule in _HALVES:
        halves = [
            f"`{plugin.name}`"
            for plugin in PLUGINS.values()
            if {point, other} <= plugin.points
            and rule(plugin)
            and enabled.has(plugin.name, point)
            and not enabled.has(plugin.name, other)
        ]
        if halves:
            done = "left out" if point is ExtensionPoint.PRE_FILTER else "used whole"
            which = ", ".join(halves)
            title = f"enabled at `{point}` and not at `{other}`: {which}; one rule does both and is {done}"
            yield _warning(title, place, sets, other)
    for name, point in _WHOLE.items():
        yield from _parts(enabled, sets, name, point, place)
    for name in sorted(WITHOUT_RULES):
        for own in sets.values():
            for each in own.enabled:
                if each.name == name and each.span:
                    yield _gap(f"kdsl has no rule for plugin `{name}`", each.span)
    for (name, key), default in _TIMEOUTS.items():
        value = arguments.of(name).get(key, default)
        if (seconds(value) if isinstance(value, str) else value) != default:
            yield _gap(f"`{key}` of {name} is not used: kdsl waits for nothing there", place)


def _parts(
    enabled: Enabled, sets: Mapping[str, PluginSet], name: str, point: ExtensionPoint, place: Span
) -> Iterator[Diagnostic]:
    """Yield a warning for a plugin that runs at points in only one of kdsl and kube-scheduler."""
    runs = enabled.has(name, point)
    skipped = (ExtensionPoint.PRE_FILTER, ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE, point)
    others = [each for each in ExtensionPoint if each in PLUGINS[name].points and each not in skipped]
    differing = [each for each in others if enabled.has(name, each) != runs]
    if differing:
        named = ", ".join(f"`{each}`" for each in differing)
        does, why = ("also runs", "enabled") if runs else ("does not run", "not enabled")
        title = f"`{name}` is {why} at `{point}`: in kdsl it {does} at {named}"
        listed = (each for each in (point, *differing) if each in sets)
        yield _warning(title, place, sets, next(listed, point))


def _warning(title: str, place: Span, sets: Mapping[str, PluginSet], point: ExtensionPoint) -> Diagnostic:
    """Return a warning at the lists of the point, if there are some, else at `place`."""
    for key in (point, MULTI_POINT_KEY):
        own = sets.get(key)
        listed = (*own.disabled, *own.enabled) if own else ()
        if listed and listed[0].span:
            return _gap(title, listed[0].span)
    return _gap(title, place)


def _gap(title: str, span: Span) -> Diagnostic:
    return Diagnostic(ConfigCode.NOT_SUPPORTED, title, span, severity=Severity.WARNING)

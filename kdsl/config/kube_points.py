"""The plugins of each extension point: a profile's lists, merged with the default set and expanded.

Facts of kube-scheduler (apis/config/v1/default_plugins.go `mergePluginSet`, scheduler/framework/runtime
`expandMultiPointPlugins`, `getScoreWeights`): the lists at a point win over multiPoint. A default plugin that
is listed again stays in its place. The order at a point is: the plugins that a profile lists there and that
multiPoint has too, in the order of the list; the rest of multiPoint; the plugins listed only there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode
from kdsl.config.kube_plugins import ALL, MULTI_POINT, MULTI_POINT_KEY, PLUGINS, ExtensionPoint

MAX_TOTAL_SCORE = 2**63 - 1
MAX_NODE_SCORE = 100


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """A plugin in a list of a profile; `span` is None for one of the default set."""

    name: str
    weight: int = 0
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins that a profile enables and disables at a point."""

    enabled: tuple[ListedPlugin, ...] = ()
    disabled: tuple[ListedPlugin, ...] = ()

    def disables(self, name: str) -> bool:
        return any(each.name in (name, ALL) for each in self.disabled)


NOTHING = PluginSet()


@dataclass(frozen=True, slots=True)
class Enabled:
    """The plugins of a profile by extension point, in order; `weights` are the weights of those that
    score.
    """

    points: Mapping[ExtensionPoint, tuple[str, ...]]
    weights: Mapping[str, int]

    def has(self, plugin: str, point: ExtensionPoint) -> bool:
        """Return whether the plugin runs at the point."""
        return plugin in self.points[point]


def expand(sets: Mapping[str, PluginSet], found: list[Diagnostic]) -> Enabled:
    """Return the plugins of a profile; `sets` are its lists by point, with plugins of kube-scheduler only.

    Lists that kube-scheduler would refuse are reported.
    """
    everywhere = merged(sets.get(MULTI_POINT_KEY, NOTHING))
    _report_twice(everywhere, MULTI_POINT_KEY, found)
    points = {}
    for point in ExtensionPoint:
        own = sets.get(point, NOTHING)
        _report_twice(own.enabled, point, found)
        found.extend(_without_point(own, point))
        points[point] = _at(point, everywhere, own)
    listed = (*sets.get(ExtensionPoint.SCORE, NOTHING).enabled, *everywhere)
    weights = {name: _weight(name, listed) for name in points[ExtensionPoint.SCORE]}
    enabled = Enabled(points, weights)
    if sum(weights.values()) * MAX_NODE_SCORE > MAX_TOTAL_SCORE:
        span = next((each.span for each in listed if each.span and each.weight), None)
        found.append(
            Diagnostic(ConfigCode.WRONG_VALUE, "the weights of all plugins are too large together", span)
        )
    return enabled


def merged(own: PluginSet) -> tuple[ListedPlugin, ...]:
    """Return the default set with the changes of a profile's `multiPoint`."""
    last = {each.name: index for index, each in enumerate(own.enabled)}
    replaced: set[int] = set()
    plugins: list[ListedPlugin] = []
    for plugin in MULTI_POINT:
        if own.disables(plugin.name):
            continue
        index = last.get(plugin.name)
        if index is None:
            plugins.append(ListedPlugin(plugin.name, plugin.weight))
        else:
            plugins.append(own.enabled[index])
            replaced.add(index)
    return (*plugins, *(each for index, each in enumerate(own.enabled) if index not in replaced))


def _at(point: ExtensionPoint, everywhere: Sequence[ListedPlugin], own: PluginSet) -> tuple[str, ...]:
    """Return the plugins of one point, in order."""
    listed = [each.name for each in own.enabled if point in PLUGINS[each.name].points]
    expanded = [
        each.name for each in everywhere if point in PLUGINS[each.name].points and not own.disables(each.name)
    ]
    # Where a point disables everything, multiPoint adds nothing: only the list of the point counts.
    overriding = [name for name in listed if name in expanded]
    return tuple(dict.fromkeys((*overriding, *(name for name in expanded if name not in listed), *listed)))


def _weight(name: str, listed: Sequence[ListedPlugin]) -> int:
    """Return the weight that counts: the first weight found, in the point's own list before multiPoint's."""
    return next(each.weight for each in listed if each.name == name) or 1


def _report_twice(enabled: Sequence[ListedPlugin], point: str, found: list[Diagnostic]) -> None:
    first: dict[str, ListedPlugin] = {}
    for each in enabled:
        earlier = first.setdefault(each.name, each)
        if earlier is not each:
            spans = sorted((one.span for one in (earlier, each) if one.span), key=lambda span: span.start)
            labels = (Label(spans[0], "the first one is here"),) if len(spans) > 1 else ()
            title = f"plugin `{each.name}` is enabled twice at `{point}`"
            span = spans[-1] if spans else None
            found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, span, secondary=labels))


def _without_point(own: PluginSet, point: ExtensionPoint) -> Iterator[Diagnostic]:
    for each in own.enabled:
        if point not in PLUGINS[each.name].points:
            title = f"plugin `{each.name}` has nothing to do at `{point}`"
            has = ", ".join(f"`{other}`" for other in ExtensionPoint if other in PLUGINS[each.name].points)
            yield Diagnostic(ConfigCode.WRONG_VALUE, title, each.span, help=(f"it runs at {has}",))

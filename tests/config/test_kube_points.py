"""The plugin lists of profiles, merged and expanded as kube-scheduler does."""

from __future__ import annotations

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.config.kube_plugins import ALL, MULTI_POINT, MULTI_POINT_KEY, PLUGINS, ExtensionPoint
from kdsl.config.kube_points import ListedPlugin, PluginSet, expand

SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)


def enabled(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(ListedPlugin(name) for name in names))


def disabled(*names: str) -> PluginSet:
    return PluginSet(disabled=tuple(ListedPlugin(name) for name in names))


def both(on: PluginSet, off: PluginSet) -> PluginSet:
    return PluginSet(on.enabled, off.disabled)


@pytest.mark.parametrize(
    ("sets", "scores"),
    [
        ({}, SCORES),
        (
            {MULTI_POINT_KEY: disabled("InterPodAffinity")},
            [each for each in SCORES if each != "InterPodAffinity"],
        ),
        ({MULTI_POINT_KEY: disabled(ALL)}, []),
        ({ExtensionPoint.SCORE: disabled(ALL)}, []),
        # What is listed at the point comes first if multiPoint has it too, in its own order.
        (
            {ExtensionPoint.SCORE: enabled("ImageLocality", "NodeAffinity")},
            [
                "ImageLocality",
                "NodeAffinity",
                *(each for each in SCORES if each not in ("ImageLocality", "NodeAffinity")),
            ],
        ),
        # What is disabled and enabled at the point is not of multiPoint any more, and goes last.
        (
            {ExtensionPoint.SCORE: both(enabled("TaintToleration"), disabled("TaintToleration"))},
            [*SCORES[1:], "TaintToleration"],
        ),
        (
            {ExtensionPoint.SCORE: both(enabled("ImageLocality", "TaintToleration"), disabled(ALL))},
            ["ImageLocality", "TaintToleration"],
        ),
        # A default plugin that multiPoint lists again stays in its place; without the others it stands alone.
        ({MULTI_POINT_KEY: enabled("ImageLocality")}, SCORES),
        ({MULTI_POINT_KEY: both(enabled("ImageLocality", "NodeName"), disabled(ALL))}, ["ImageLocality"]),
        # A point's own list does not change the others.
        ({ExtensionPoint.FILTER: disabled(ALL)}, SCORES),
    ],
)
def test_what_runs_at_score(sets: dict[str, PluginSet], scores: list[str]) -> None:
    found: list[Diagnostic] = []
    assert list(expand(sets, found).points[ExtensionPoint.SCORE]) == list(scores)
    assert found == []


@pytest.mark.parametrize(
    ("sets", "weight"),
    [
        ({}, 3),
        ({ExtensionPoint.SCORE: PluginSet((ListedPlugin("TaintToleration", 7),))}, 7),
        ({MULTI_POINT_KEY: PluginSet((ListedPlugin("TaintToleration", 5),))}, 5),
        (
            {
                MULTI_POINT_KEY: PluginSet((ListedPlugin("TaintToleration", 5),)),
                ExtensionPoint.SCORE: PluginSet((ListedPlugin("TaintToleration", 7),)),
            },
            7,
        ),
        # No weight is 1, also where the default set has another.
        ({ExtensionPoint.SCORE: enabled("TaintToleration")}, 1),
        ({MULTI_POINT_KEY: enabled("TaintToleration")}, 1),
    ],
)
def test_the_weight_that_counts(sets: dict[str, PluginSet], weight: int) -> None:
    assert expand(sets, []).weights["TaintToleration"] == weight


@pytest.mark.parametrize(
    ("sets", "title"),
    [
        (
            {ExtensionPoint.FILTER: enabled("NodeName", "NodeName")},
            "plugin `NodeName` is enabled twice at `filter`",
        ),
        (
            {MULTI_POINT_KEY: enabled("NodeName", "NodeName")},
            "plugin `NodeName` is enabled twice at `multiPoint`",
        ),
        ({ExtensionPoint.SCORE: enabled("NodeName")}, "plugin `NodeName` has nothing to do at `score`"),
        (
            {ExtensionPoint.SCORE: PluginSet((ListedPlugin("ImageLocality", 2**63 // 100 + 1),))},
            "the weights of all plugins are too large together",
        ),
    ],
)
def test_what_kube_scheduler_refuses(sets: dict[str, PluginSet], title: str) -> None:
    found: list[Diagnostic] = []
    expand(sets, found)
    assert [each.title for each in found] == [title]


def test_every_plugin_has_a_name_of_its_own() -> None:
    assert len(PLUGINS) == len(MULTI_POINT)

"""The plugins of kube-scheduler 1.36 as its configuration names them, and the kdsl rules for them.

Facts of kube-scheduler (apis/config/v1/default_plugins.go): the default set is all of `MULTI_POINT`, in this
order, at every extension point that a plugin has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ExtensionPoint(StrEnum):
    """The extension points at which a plugin can be enabled, in the order of kube-scheduler."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"


MULTI_POINT_KEY: Final = "multiPoint"
"""The key that stands for all points at once."""
ALL: Final = "*"
"""The name that disables every plugin."""

_FILTERING: Final = frozenset({ExtensionPoint.PRE_FILTER, ExtensionPoint.FILTER})
_SCORING: Final = frozenset({ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE})


@dataclass(frozen=True, slots=True)
class KubePlugin:
    """A plugin of kube-scheduler: its points, and its weight in the default set (0 counts as 1).

    `predicate` and `score` are the rules that implement it, under the names of a file that imports the
    shipped package as `kubernetes`; empty where there is none.
    """

    name: str
    points: frozenset[ExtensionPoint]
    weight: int = 0
    predicate: str = ""
    score: str = ""


def _rule(name: str, points: Iterable[ExtensionPoint], weight: int = 0) -> KubePlugin:
    """Return a plugin that is implemented by rules of its own name."""
    has = frozenset(points)
    rule = f"kubernetes.{name}"
    return KubePlugin(
        name,
        has,
        weight,
        rule if ExtensionPoint.FILTER in has else "",
        rule if ExtensionPoint.SCORE in has else "",
    )


MULTI_POINT: Final = (
    KubePlugin("SchedulingGates", frozenset({ExtensionPoint.PRE_ENQUEUE})),
    KubePlugin("PrioritySort", frozenset({ExtensionPoint.QUEUE_SORT})),
    _rule("NodeUnschedulable", {ExtensionPoint.FILTER}),
    _rule("NodeName", {ExtensionPoint.FILTER}),
    _rule("TaintToleration", {ExtensionPoint.FILTER, *_SCORING}, weight=3),
    _rule("NodeAffinity", _FILTERING | _SCORING, weight=2),
    _rule("NodePorts", _FILTERING),
    _rule("NodeResourcesFit", _FILTERING | _SCORING | {ExtensionPoint.PLACEMENT_SCORE}, weight=1),
    _rule("VolumeRestrictions", _FILTERING),
    _rule("NodeVolumeLimits", _FILTERING),
    # It scores with the feature gate StorageCapacityScoring only, which is off.
    KubePlugin(
        "VolumeBinding",
        _FILTERING | _SCORING | {ExtensionPoint.RESERVE, ExtensionPoint.PRE_BIND},
        predicate="plugins.VolumeBinding",
    ),
    _rule("VolumeZone", _FILTERING),
    _rule("PodTopologySpread", _FILTERING | _SCORING, weight=2),
    _rule("InterPodAffinity", _FILTERING | _SCORING, weight=2),
    KubePlugin(
        "DynamicResources",
        _FILTERING
        | {
            ExtensionPoint.PRE_ENQUEUE,
            ExtensionPoint.POST_FILTER,
            ExtensionPoint.SCORE,
            ExtensionPoint.RESERVE,
            ExtensionPoint.PRE_BIND,
        },
        weight=2,
        predicate="plugins.DynamicResources",
        score="plugins.DynamicResources",
    ),
    KubePlugin("DefaultPreemption", frozenset({ExtensionPoint.PRE_ENQUEUE, ExtensionPoint.POST_FILTER})),
    _rule("NodeResourcesBalancedAllocation", _SCORING, weight=1),
    _rule("ImageLocality", {ExtensionPoint.SCORE}, weight=1),
    KubePlugin("DefaultBinder", frozenset({ExtensionPoint.BIND})),
    KubePlugin("NodeDeclaredFeatures", _FILTERING),
)
"""The default set, in the order of every point."""

PLUGINS: Final[Mapping[str, KubePlugin]] = {plugin.name: plugin for plugin in MULTI_POINT}

GATED: Final = frozenset({"GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"})
"""Plugins behind feature gates that are off."""
REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that version v1 of the configuration refuses by name: NodeVolumeLimits replaces them."""
WITHOUT_RULES: Final = frozenset({"NodeDeclaredFeatures"})
"""Plugins of the default set without a counterpart in kdsl."""

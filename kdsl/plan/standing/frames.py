"""Rules whose answers cannot be kept, as they read what changes with every pod: frames and programs are."""

from __future__ import annotations

from typing import Final, TypeVar

from kdsl.plan.hookimpls import PredicatePlugin, ScorePlugin
from kdsl.plan.standing.dependencies import Dependencies
from kdsl.plan.standing.likeness import Likenesses

_PASSING: Final = frozenset(
    {
        *("cluster.pods", "cluster.static", "cluster.images", "cluster.nodes"),
        *("node.static", "node.usage", "feasible"),
    }
)
"""What a frame forgets from one attempt to the next."""

Rule = TypeVar("Rule", bound=PredicatePlugin | ScorePlugin)


def with_frames(plugin: Rule, likenesses: Likenesses) -> Rule:
    """Return the plugin, which keeps its frames by what it sees of pods, if that is known."""
    dependencies = _dependencies(plugin)
    if dependencies is not None:
        plugin.keep_frames(likenesses.signature(dependencies), dependencies.epoch)
    return plugin


def with_residuals(plugin: Rule, likenesses: Likenesses) -> Rule:
    """Return the plugin, which has programs of its own for kinds of pods as well."""
    dependencies = _dependencies(plugin)
    if dependencies is not None:
        plugin.keep_residuals(likenesses.signature(dependencies), dependencies.epoch)
    return with_frames(plugin, likenesses)


def _dependencies(plugin: PredicatePlugin | ScorePlugin) -> Dependencies | None:
    return Dependencies.of(plugin.rule.reads - _PASSING)

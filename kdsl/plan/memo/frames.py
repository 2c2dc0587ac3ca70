"""Rules whose answers cannot be kept, as they read what changes with every pod: frames and programs are."""

from __future__ import annotations

from typing import Final, TypeVar

from kdsl.plan.compile.frames import EpochOf
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Likenesses, Signature
from kdsl.plan.rules.plugins import PredicatePlugin, ScorePlugin

_PASSING: Final = frozenset(
    {
        *("cluster.pods", "cluster.static", "cluster.images", "cluster.nodes"),
        *("node.static", "node.usage", "feasible"),
    }
)
"""What a frame forgets from one attempt to the next."""

Rule = TypeVar("Rule", bound=PredicatePlugin | ScorePlugin)


def with_residuals(plugin: Rule, likenesses: Likenesses) -> Rule:
    """Return the plugin, which has programs of its own for kinds of pods as well."""
    kinds = _kinds(plugin, likenesses)
    if kinds is not None:
        plugin.keep_frames(*kinds)
        plugin.keep_residuals(*kinds)
    return plugin


def _kinds(plugin: PredicatePlugin | ScorePlugin, likenesses: Likenesses) -> tuple[Signature, EpochOf] | None:
    """Return what tells kinds of pods apart, and states of the catalog; None where no two pods look alike."""
    dependencies = Dependencies.of(plugin.rule.reads - _PASSING)
    return None if dependencies is None else (likenesses.signature(dependencies), dependencies.epoch)

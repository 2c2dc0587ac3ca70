"""Rules whose answers change with every pod: only their frames are kept."""

from __future__ import annotations

from typing import Final, TypeVar

from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.epochs import Epochs
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import PredicatePlugin, ScorePlugin

_TRANSIENT: Final = frozenset(
    {
        *("cluster.pods", "cluster.static", "cluster.images", "cluster.nodes"),
        *("node.static", "node.usage", "feasible"),
    }
)
"""The reads that may change between two attempts."""

Rule = TypeVar("Rule", bound=PredicatePlugin | ScorePlugin)


def with_kept_frames(plugin: Rule, signatures: Signatures) -> Rule:
    """Return the plugin with frames kept by signature, unless no two pods share one."""
    dependencies = Dependencies.of(plugin.reads - _TRANSIENT)
    if dependencies is not None:
        plugin.keep(signatures.signature(dependencies), Epochs(dependencies.versions))
    return plugin

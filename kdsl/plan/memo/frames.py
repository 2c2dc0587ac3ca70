"""Rules whose answers change with every pod: only their frames and programs are kept."""

from __future__ import annotations

from typing import Final, TypeVar

from kdsl.plan.compile.frames import EpochOf
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Signature, Signatures
from kdsl.plan.rules.plugins import PredicatePlugin, ScorePlugin

_TRANSIENT: Final = frozenset(
    {
        *("cluster.pods", "cluster.static", "cluster.images", "cluster.nodes"),
        *("node.static", "node.usage", "feasible"),
    }
)
"""The reads that may change between two attempts."""

Rule = TypeVar("Rule", bound=PredicatePlugin | ScorePlugin)


def with_residuals(plugin: Rule, signatures: Signatures) -> Rule:
    """Return the plugin with frames and residual programs by signature."""
    kinds = _kinds(plugin, signatures)
    if kinds is not None:
        plugin.keep_frames(*kinds)
        plugin.keep_residuals(*kinds)
    return plugin


def _kinds(plugin: PredicatePlugin | ScorePlugin, signatures: Signatures) -> tuple[Signature, EpochOf] | None:
    """Return the functions for a pod's signature and the catalog's epoch; None if no two pods share a
    signature.
    """
    dependencies = Dependencies.of(plugin.rule.reads - _TRANSIENT)
    return None if dependencies is None else (signatures.signature(dependencies), dependencies.epoch)

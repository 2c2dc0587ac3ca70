"""The options of HAMi's behaviour, from HAMi's flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.cluster.objects.node import NodeFacts
from kdsl.extender.hami.roles import ALONE, Replica


@dataclass(frozen=True, slots=True)
class HamiOptions:
    """The settings, with HAMi's defaults.

    `scheduler_name` is the `schedulerName` that the webhook sets for pods with devices; empty: it sets none.
    With `overwrites_default` it also replaces `default-scheduler`. `lock_seconds` is the duration of a node's
    lock that names its pod. A member of a pod group waits `lock_patience` seconds for a lock of another pod.
    The cards of nodes without the labels `node_labels` are ignored. A lock that no pod needs is released
    after `stray_seconds`. `metrics` is the address of HAMi's metrics, None for no server; with
    `has_legacy_metrics` they have their old names, too.
    """

    scheduler_name: str = "hami-scheduler"
    overwrites_default: bool = True
    lock_seconds: float = 300
    lock_patience: float = 28.0
    node_labels: Mapping[str, str] = NO_STRINGS
    stray_seconds: int = 60
    metrics: tuple[str, int] | None = None
    has_legacy_metrics: bool = False
    replica: Replica = ALONE

    def selects(self, node: NodeFacts) -> bool:
        """Return whether the cards of a node are used."""
        return all(node.labels.get(key) == value for key, value in self.node_labels.items())

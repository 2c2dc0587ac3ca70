"""How HAMi's place is taken: what its flags say beside the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.cluster.objects.node import NodeFacts
from kdsl.extender.hami.roles import ALONE, Replica


@dataclass(frozen=True, slots=True)
class HamiOptions:
    """The settings, with HAMi's defaults.

    `scheduler_name` is what the webhook gives to pods that use devices, empty for nothing.
    `overwrites_default` says whether a pod that asks for `default-scheduler` by name is such a pod.
    `lock_seconds` is how long a lock of a node holds that names its pod. A member of a pod group waits
    `lock_patience` seconds for a lock of another pod. Nodes without the labels `node_labels` have no cards.
    A lock that nobody needs any more is given back after `stray_seconds`. HAMi's metrics are on the address
    `metrics`, None for nowhere, with their old names as well where it `has_legacy_metrics`.
    """

    scheduler_name: str = "hami-scheduler"
    overwrites_default: bool = True
    lock_seconds: int = 300
    lock_patience: float = 28.0
    node_labels: Mapping[str, str] = NO_STRINGS
    stray_seconds: int = 60
    metrics: tuple[str, int] | None = None
    has_legacy_metrics: bool = False
    replica: Replica = ALONE

    def selects(self, node: NodeFacts) -> bool:
        """Tell whether the cards of a node are looked at."""
        return all(node.labels.get(key) == value for key, value in self.node_labels.items())

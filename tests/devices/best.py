"""The nodes that HAMi's scheduler takes by the scores of their cards."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from kdsl.cluster.devices.policy import Policy


def best_of(scores: Mapping[str, np.float32], policy: Policy) -> tuple[str, ...]:
    """Return the nodes with the winning score: the lowest if the policy spreads, else the highest."""
    if not scores:
        return ()
    best = min(scores.values()) if policy.spreads_nodes else max(scores.values())
    return tuple(name for name, score in scores.items() if score == best)

"""How many feasible nodes to look for, and where in the visiting order to begin: kube-scheduler's sampling
and rotation.

Sources of the formulas: numFeasibleNodesToFind and nextStartNodeIndex of kube-scheduler 1.36.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MIN_NODES = 100
_MIN_PERCENTAGE = 5
_BASE_PERCENTAGE = 50
_NODES_PER_POINT = 125


def num_feasible_nodes_to_find(candidates: int, percentage: int) -> int:
    """Return how many feasible nodes of `candidates` are enough; percentage 0 adapts to their number."""
    if candidates < _MIN_NODES:
        return candidates
    if percentage == 0:
        percentage = max(_BASE_PERCENTAGE - candidates // _NODES_PER_POINT, _MIN_PERCENTAGE)
    return max(candidates * percentage // 100, _MIN_NODES)


def rotate(candidates: NDArray[np.int32], start: int) -> NDArray[np.int32]:
    """Return the candidates in visiting order: index i visits candidate `(start + i) % len(candidates)`."""
    if not len(candidates):
        return candidates
    first = start % len(candidates)
    return np.concatenate((candidates[first:], candidates[:first])) if first else candidates


def next_start(start: int, processed: int, nodes: int) -> int:
    """Return where the next search begins.

    `processed` counts the feasible and the rejected nodes of this one, `nodes` those of the whole snapshot.
    """
    return (start + processed) % nodes

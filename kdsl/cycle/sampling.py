"""The number of feasible nodes to look for, and the start in the visiting order: kube-scheduler's sampling
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


class Rotated:
    """Candidates in visiting order: index i visits candidate `(start + i) % len(candidates)`.

    The order is never built as a whole: in a large cluster a search ends long before it has visited all
    nodes.
    """

    def __init__(self, candidates: NDArray[np.int32], start: int = 0) -> None:
        self._candidates = candidates
        self._first = start % len(candidates) if len(candidates) else 0

    def __len__(self) -> int:
        return len(self._candidates)

    def cut(self, begin: int, end: int) -> NDArray[np.int32]:
        """Return the candidates from index `begin` up to `end`, or to the last."""
        all_of_them, size = self._candidates, len(self._candidates)
        begin, end = begin + self._first, min(end, size) + self._first
        if begin >= size:
            return all_of_them[begin - size : end - size]
        if end <= size:
            return all_of_them[begin:end]
        return np.concatenate((all_of_them[begin:], all_of_them[: end - size]))


def next_start(start: int, processed: int, nodes: int) -> int:
    """Return the start of the next search.

    `processed` counts the feasible and the rejected nodes of this one, `nodes` those of the whole snapshot.
    """
    return (start + processed) % nodes if nodes else 0

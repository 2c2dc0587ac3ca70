"""The node at which a search for feasible nodes begins: kube-scheduler's rotation.

The `sample` of the profile says how many it looks for. Source: nextStartNodeIndex of kube-scheduler 1.36.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Rotated:
    """Candidates in visiting order: index i visits candidate `(start + i) % len(candidates)`.

    The order is never built as a whole: in a large cluster a search ends long before it has visited all
    nodes. `size` is the number of candidates.
    """

    def __init__(self, candidates: NDArray[np.intp], start: int = 0) -> None:
        self._candidates = candidates
        self.size = size = len(candidates)
        self._first = start % size if size else 0

    def cut(self, begin: int, end: int) -> NDArray[np.intp]:
        """Return the candidates from index `begin` up to `end`, or to the last."""
        all_of_them, size = self._candidates, self.size
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

"""Chooses one of the nodes with the highest total."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cycle.decision import TieBreak


class Choice(Struct, frozen=True):
    """`index` into the feasible list, its `total` (None: not scored), and how many nodes shared it."""

    index: int
    total: int | None = None
    tied: int = 1


def select(totals: NDArray[np.int64], tie_break: TieBreak, random: Random | None = None) -> Choice:
    """Choose among at least one total, given in visiting order; `random` is for `TieBreak.RANDOM`."""
    index = int(totals.argmax())
    highest = totals[index]
    ties = (totals == highest).nonzero()[0]
    if len(ties) > 1:
        match tie_break:
            case TieBreak.HEAP:
                index = heap_top(ties)
            case TieBreak.RANDOM:
                assert random is not None
                index = int(ties[random.randrange(len(ties))])
            case TieBreak.FIRST:
                pass
    return Choice(index, int(highest), len(ties))


def heap_top(ties: NDArray[np.intp]) -> int:
    """Return which of the maximum's indices is on top of a binary heap built as by Go's `heap.Init`.

    Heapify works from the last parent to the root; sifting down replaces an element by a child only if the
    child is strictly greater, and prefers the left child unless the right one is strictly greater. So the top
    of the subtree at i is element i where it equals the subtree's maximum, else the top of the left subtree
    where that one holds the maximum, else of the right: the first maximum in pre-order. What a sift-down
    moves below i never changes the top of i.

    """
    if ties[0] == 0:
        return 0
    # INVARIANT: ties ascend.
    return int(ties[_pre_order(int(ties[-1]).bit_length())[ties].argmin()])


@cache
def _pre_order(bits: int) -> NDArray[np.int64]:
    """Return what sorts the indices of less than so many bits into the pre-order of a binary heap.

    The path from the root to index i is the binary form of i + 1 without its leading one (0 left, 1 right),
    and pre-order is the lexicographic order of paths, a prefix first. Aligned to the left, paths compare as
    numbers, then by depth.
    """
    places = np.arange(1, (1 << bits) + 1, dtype=np.int64)
    depths = np.frexp(places.astype(np.float64))[1].astype(np.int64)
    # INVARIANT: a depth takes six bits at most.
    return places << (bits + 1 - depths) << 6 | depths

"""Chooses one of the nodes with the highest total."""

from __future__ import annotations

from functools import cache, lru_cache
from random import Random
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cycle.decision import TieBreak

MAX_ORDERS: Final = 32
"""The largest number of pre-orders in the cache, 8 bytes for each node. The number of feasible nodes varies
little.
"""


class Choice(Struct, frozen=True):
    """`index` into the feasible list, its `total` (None: not scored), and the number of nodes that share
    it.
    """

    index: int
    total: int | None = None
    tied: int = 1


def select(
    totals: NDArray[np.int64], tie_break: TieBreak, random: Random | None = None, shared: int = 0
) -> Choice:
    """Choose among at least one total, given in visiting order, each without `shared` points; `random` is for
    `TieBreak.RANDOM`.
    """
    if tie_break is TieBreak.HEAP:
        order = _pre_order(len(totals))
        index = order.item(totals.take(order).argmax())
    else:
        index = int(totals.argmax())
    highest = totals.item(index)
    places = (totals == highest).nonzero()[0]
    tied = len(places)
    if tie_break is TieBreak.RANDOM and tied > 1:
        assert random is not None
        index = places.item(random.randrange(tied))
    return Choice(index, highest + shared, tied)


@lru_cache(MAX_ORDERS)
def _pre_order(size: int) -> NDArray[np.intp]:
    """Return the indices of a binary heap in pre-order: the first maximum in it is the top of the heap.

    The heap is built as by Go's `heap.Init`. Heapify works from the last parent to the root; sifting down
    replaces an element by a child only if the child is strictly greater, and prefers the left child unless
    the right one is strictly greater. So the top of the subtree at i is element i where it equals the
    subtree's maximum, else the top of the left subtree where that one holds the maximum, else of the right. A
    sift-down moves elements below i only and never changes the top of i.
    """
    order = _full_pre_order(size.bit_length())
    return order[order < size]


@cache
def _full_pre_order(bits: int) -> NDArray[np.intp]:
    """Return the pre-order of all indices with fewer than `bits` bits.

    The path from the root to index i is the binary form of i + 1 without its leading one (0 left, 1 right),
    and pre-order is the lexicographic order of paths, a prefix first. Aligned to the left, paths compare as
    numbers, then by depth.
    """
    places = np.arange(1, (1 << bits) + 1, dtype=np.int64)
    depths = np.frexp(places.astype(np.float64))[1].astype(np.int64)
    # INVARIANT: a depth takes six bits at most.
    return np.argsort(places << (bits + 1 - depths) << 6 | depths)

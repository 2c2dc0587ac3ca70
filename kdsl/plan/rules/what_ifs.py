"""Judges what-ifs at once, each about one node that lacks some of its pods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.what_ifs import NotTogether, WhatIfCounts

Ids = NDArray[np.int32]
Ask = Callable[[ClusterView, NodeSet], Ids | None]
"""Returns the number of each node's status in the cluster of a view; None if all pass."""


def statuses_of_what_ifs(nodes: NodeSet, ask: Ask) -> Ids:
    """Return the number of each node's status in its own what-if.

    The rule runs on nodes together, with the numbers of the first one's what-if; it runs again on those whose
    what-ifs have other numbers.
    """
    ids = np.zeros(len(nodes), np.int32)
    left = [np.arange(len(nodes))]
    while left:
        places = left.pop()
        some = nodes.take(places)
        try:
            found, groups = _together(some, ask)
        except NotTogether:
            for place, row in zip(places.tolist(), some.rows, strict=True):
                alone = NodeSet(nodes.snapshot.what_if(row), row[np.newaxis])
                answer = ask(ClusterView(alone.snapshot), alone)
                ids[place] = 0 if answer is None else answer[0]
            continue
        if found is not None:
            ids[places[groups[0]]] = found[groups[0]]
        left += [places[each] for each in groups[1:]]
    return ids


def _together(nodes: NodeSet, ask: Ask) -> tuple[Ids | None, list[NDArray[np.intp]]]:
    """Return the answers of a rule that are right for the first group of nodes, and all groups."""
    assert nodes.snapshot.what_ifs is not None
    counts, shortages = WhatIfCounts(nodes, nodes.snapshot.what_ifs), Meter.shortages
    found = ask(ClusterView(nodes.snapshot, counts), nodes)
    if Meter.shortages != shortages:
        # With fewer pods, counting takes fewer steps.
        raise NotTogether
    return found, counts.groups()

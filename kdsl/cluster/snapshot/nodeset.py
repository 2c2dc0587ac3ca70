"""A selection of nodes of a snapshot, in order: the candidates that hooks take and return."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumns
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot


class NodeSet(Struct, frozen=True, eq=False):
    """Nodes of `snapshot`, by row, in visiting order.

    Results for a node set are parallel to `rows`.
    """

    snapshot: Snapshot
    rows: Rows

    @staticmethod
    def all(snapshot: Snapshot) -> NodeSet:
        """Return every node in visiting order."""
        return NodeSet(snapshot, snapshot.order)

    def __len__(self) -> int:
        return len(self.rows)

    def nodes(self) -> Iterator[NodeInfo]:
        """Yield the nodes."""
        return map(self.snapshot.info, self.rows.tolist())

    def names(self) -> tuple[str, ...]:
        """Return the names of the nodes."""
        names = self.snapshot.names
        return tuple(names[row] for row in self.rows.tolist())

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.integer]) -> NodeSet:
        """Return the nodes for which a mask is true, or those at the given positions, in that order."""
        return NodeSet(self.snapshot, self.rows[chosen])

    def by_labels(self, labels: Mapping[str, Collection[str] | None]) -> tuple[NodeSet, NDArray[np.intp]]:
        """Return a node of each combination of values of labels, and the place of each node's one among them.

        Where a label has a collection, other values and its absence count as one.

        What reads nothing else of a node is the same for all nodes of a combination. Over an overlay with
        other labels, each node is a combination.
        """
        if not self.snapshot.has_live_facts or len(self) == 1:
            return self, np.arange(len(self))
        facts = FactColumns.of(self.snapshot.live)
        numbers = np.zeros(len(self), np.intp)
        for key, named in labels.items():
            column = facts.key("labels", key)
            codes, count = column.digit(self.rows)
            if named is not None:
                # Values of these rows only: a hostname has as many as the cluster has nodes.
                used, places = np.unique(codes, return_inverse=True)
                is_named = np.array([column.values[code] in named for code in used.tolist()], np.bool_)
                codes = np.where(is_named.take(places), codes, ABSENT)
            # Renumbering keeps the products small.
            numbers = np.unique(numbers * count + codes, return_inverse=True)[1]
        return self.by_numbers(numbers)

    def by_numbers(self, numbers: NDArray[np.integer]) -> tuple[NodeSet, NDArray[np.intp]]:
        """Return the first node of each number, in the order of these nodes, and the place of each node's one
        among them; `numbers` has one for each node.
        """
        _, firsts, of_node = np.unique(numbers, return_index=True, return_inverse=True)
        order = firsts.argsort()
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return self.take(firsts[order]), places.take(of_node)

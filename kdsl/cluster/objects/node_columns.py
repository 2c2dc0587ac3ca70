"""The facts of nodes as columns, in the form that selectors read: one operation for all nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.taints import Toleration

Mask: TypeAlias = NDArray[np.bool_]
"""One bool per node."""


class NodeColumns(Protocol):
    """The facts of some nodes as columns: each method returns one cell per node.

    Columns of expressions find a method that takes them by its name: that of the method for one node, with
    `_over` appended.
    """

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows of the nodes in the live snapshot."""
        ...

    def __len__(self) -> int: ...

    def has_label(self, key: str) -> Mask:
        """Return which nodes have a label with this key."""
        ...

    def has_label_in(self, key: str, values: Iterable[str]) -> Mask:
        """Return which nodes have one of these values of a label."""
        ...

    def label_numbers(self, key: str) -> tuple[NDArray[np.int64], Mask]:
        """Return the label as an integer, and which nodes have one that is an integer."""
        ...

    def is_named(self, name: str) -> Mask:
        """Return which nodes have this name."""
        ...

    def has_untolerated(self, effects: Iterable[str], tolerations: Sequence[Toleration]) -> Mask:
        """Return which nodes have a taint with one of these effects that no toleration matches."""
        ...


def none_of(nodes: NodeColumns) -> Mask:
    """Return the mask of no node."""
    return np.zeros(len(nodes), np.bool_)

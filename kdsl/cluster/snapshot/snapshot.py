"""The cluster at one moment, in rows and columns: the input of a scheduling cycle.

`ClusterCache.snapshot` returns it.

Each node has a row, which stays the same while the node exists; a later node may get the row of a removed
one. Columns have a cell for every row, free ones included, so readers walk over nodes by `order`, which lists
the rows in use.

A value that a reader computed from a row is valid as long as the version it was computed from:
`static_version[row]` for the node's own facts, `usage_version[row]` for the pods on it, `images_version` for
the nodes of each image, `nodes_version` for the set of nodes. Versions are never repeated, so equal versions
mean equal facts. Versions of the live snapshot count up. Versions of overlays are negative, so that the
number of what-ifs does not change the version that a decision records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.base.resources import Resources, resource_order
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.catalog import Catalog
from kdsl.cluster.snapshot.columns import MAX_SUMMED, Int64Column

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot

Rows: TypeAlias = NDArray[np.intp]

REQUESTS: Final = {"requested": "usage", "scored_requests": "scored_usage"}
"""The attribute of pods that adds up to each family of amounts."""


class Snapshot(ABC):
    """The interface of a snapshot for readers.

    Arrays are read only and in canonical units; a row is an index into them.
    """

    is_overlay: bool
    live: LiveSnapshot
    """The snapshot below all overlays; of a live snapshot, itself. Every hook reads it."""
    has_live_facts: bool
    """Whether every node has the facts of the live snapshot; its pods may be others."""
    version: int
    images_version: int
    nodes_version: int
    order: Rows
    """The rows of the nodes in visiting order: zones take turns."""
    names: Sequence[str]
    """The name of each row's node; empty for a free row."""
    catalog: Catalog
    """The objects that are neither nodes nor pods; overlays share it."""
    what_ifs: WhatIfNodes | None = None
    """The nodes of many what-ifs, each with other pods in its own one; None for one cluster."""

    @property
    @abstractmethod
    def static_version(self) -> Int64Column: ...

    @property
    @abstractmethod
    def usage_version(self) -> Int64Column: ...

    @property
    @abstractmethod
    def pod_counts(self) -> Int64Column: ...

    @property
    @abstractmethod
    def resource_names(self) -> tuple[str, ...]:
        """The resources that nodes have or pods request, in `resource_order`."""

    @abstractmethod
    def info(self, row: int) -> NodeInfo:
        """Return the node of a row; KeyError where the row is free."""

    @abstractmethod
    def row_of(self, name: str) -> int | None:
        """Return the row of node `name`, None where there is no such node."""

    @abstractmethod
    def rows_of(self, names: Iterable[str]) -> list[int | None]:
        """Return the row of each node of `names`, None where there is no such node."""

    @abstractmethod
    def allocatable(self, resource: str) -> Int64Column:
        """Return the amount of `resource` of each node, by row."""

    @abstractmethod
    def requested(self, resource: str) -> Int64Column:
        """Return the requests for `resource` of the pods on each node, by row."""

    @abstractmethod
    def scored_requests(self, resource: str) -> Int64Column:
        """Return the amounts that the pods on each node count for in scores, by row."""

    @property
    @abstractmethod
    def changed_rows(self) -> frozenset[int]:
        """The rows that differ from the live snapshot."""

    @abstractmethod
    def what_if_version(self) -> int:
        """Return a new version for an overlay: negative, and never used before."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.order)

    def node(self, name: str) -> NodeInfo | None:
        """Return the node `name`, None where there is no such node."""
        row = self.row_of(name)
        return None if row is None else self.info(row)

    def overlay(self, row: int, info: NodeInfo) -> Snapshot:
        """Return this snapshot with `info` in place of the node of `row`.

        This snapshot does not change. `info` is the same node with other pods or facts; its images must stay
        equal, since other nodes count them.
        """
        before = self.info(row)
        if before.name != info.name:
            raise ValueError(f"row {row} is node {before.name}, not {info.name}")
        return _Overlay(self, _OneNode(row, info), has_new_facts=before.facts != info.facts)

    def with_what_ifs(self, nodes: WhatIfNodes) -> Snapshot:
        """Return this snapshot for many what-ifs at once: in each, one of `nodes` stands in, and no other.

        Readers of more than single nodes must look at `what_ifs`.
        """
        overlay = _Overlay(self, nodes, has_new_facts=False)
        overlay.what_ifs = nodes
        return overlay

    def what_if(self, row: int) -> Snapshot:
        """Return the snapshot of the what-if about the node of a row."""
        return self.about_one.overlay(row, self.info(row))

    @property
    def about_one(self) -> Snapshot:
        """The snapshot that what-ifs are about, of which each has one other node."""
        return self if self.what_ifs is None else self.what_ifs.base


class OtherNodes(Protocol):
    """Nodes in place of those in some rows of a snapshot. `rows` are their rows, each once."""

    rows: Rows

    def info(self, row: int) -> NodeInfo:
        """Return the node of one of the rows."""
        ...

    def cells(self, family: str, name: str) -> Int64Column | int:
        """Return the cells of the rows in a column: amounts of a resource in the family `allocatable`,
        `requested` or `scored_requests`, or the number of pods in `pods`.
        """
        ...


class WhatIfNodes(OtherNodes, Protocol):
    """Nodes without some of their pods or with further ones, each in a what-if of its own about the snapshot
    `base`. `has_more`: some have further pods.
    """

    base: Snapshot
    has_more: bool

    def removed(self, key: Hashable, amounts_of: AmountsOf) -> Int64Column:
        """Return the sum of amounts of the pods that each of the rows lacks, less that of its further pods.

        `key` stands for `amounts_of`, which is asked once about the pods of each row.
        """
        ...


AmountsOf: TypeAlias = Callable[[int, Sequence["PodInfo"], bool], Sequence[int]]
"""Returns the amount of each of some pods on a row; an empty list if all are 0. The pods are further ones if
the last argument is true, else they are on the row.
"""


class _OneNode:
    """One node in place of another."""

    def __init__(self, row: int, info: NodeInfo) -> None:
        self.rows = np.array([row], np.intp)
        self._info = info

    def info(self, row: int) -> NodeInfo:
        return self._info

    def cells(self, family: str, name: str) -> int:
        return cell_of(self._info, family, name)


class NodesWithPods:
    """Nodes of a snapshot with further `pods`, by row, each in a what-if of its own. If nodes of the snapshot
    are what-ifs themselves, the pods come in addition.
    """

    has_more = True

    def __init__(self, snapshot: Snapshot, pods: Mapping[int, Sequence[PodInfo]]) -> None:
        self.base = snapshot.about_one
        self.rows: Rows = np.fromiter(pods, np.intp, len(pods))
        self._snapshot = snapshot
        self._pods = pods
        self._infos: dict[int, NodeInfo] = {}
        self._removed: dict[Hashable, Int64Column] = {}

    def info(self, row: int) -> NodeInfo:
        node = self._infos.get(row)
        if node is None:
            node = self._snapshot.info(row)
            for pod in self._pods[row]:
                node = node.with_pod(pod)
            self._infos[row] = node
        return node

    def cells(self, family: str, name: str) -> Int64Column:
        pods = self._pods.values()
        if family == "pods":
            return self._snapshot.pod_counts[self.rows] + np.fromiter(map(len, pods), np.int64, len(pods))
        before: Int64Column = getattr(self._snapshot, family)(name)[self.rows]
        if family not in REQUESTS:
            return before
        amounts = [[getattr(pod, REQUESTS[family]).amount(name) for pod in each] for each in pods]
        if max(before.max(initial=0), *map(max, amounts)) > MAX_SUMMED:
            return np.array([cell_of(self.info(row), family, name) for row in self.rows.tolist()], np.int64)
        return before + np.fromiter(map(sum, amounts), np.int64, len(amounts))

    def removed(self, key: Hashable, amounts_of: AmountsOf) -> Int64Column:
        found = self._removed.get(key)
        if found is None:
            added = [sum(amounts_of(row, pods, True)) for row, pods in self._pods.items()]
            found = self._removed[key] = -np.array(added, np.int64)
            inner = self._snapshot.what_ifs
            if inner is not None:
                lacking = np.zeros(len(self.base.names), np.int64)
                lacking[inner.rows] = inner.removed(key, amounts_of)
                found += lacking[self.rows]
        return found


def cell_of(node: NodeInfo, family: str, name: str) -> int:
    """Return the cell of a node in a column; see `OtherNodes.cells`."""
    if family == "pods":
        return node.pod_count
    amounts: Resources = getattr(node, family)
    return amounts.amount(name)


class _Overlay(Snapshot):
    """A snapshot with other nodes in some rows. A column is copied at its first use."""

    is_overlay = True

    def __init__(self, base: Snapshot, nodes: OtherNodes, has_new_facts: bool) -> None:
        self._base = base
        self.live = base.live
        self._nodes = nodes
        self._rows = frozenset(nodes.rows.tolist())
        self._copies: dict[tuple[str, str], Int64Column] = {}
        self._has_new_facts = has_new_facts
        self.has_live_facts = base.has_live_facts and not has_new_facts
        self.version = base.what_if_version()
        self.images_version = base.images_version
        self.nodes_version = base.nodes_version
        self.order = base.order
        self.names = base.names
        self.catalog = base.catalog

    @property
    def changed_rows(self) -> frozenset[int]:
        return self._base.changed_rows | self._rows

    @property
    def static_version(self) -> Int64Column:
        if not self._has_new_facts:
            return self._base.static_version
        return self._patched("static", "", lambda: self._base.static_version, lambda: self.version)

    @property
    def usage_version(self) -> Int64Column:
        return self._patched("usage", "", lambda: self._base.usage_version, lambda: self.version)

    @property
    def pod_counts(self) -> Int64Column:
        return self._patched("pods", "", lambda: self._base.pod_counts)

    @property
    def resource_names(self) -> tuple[str, ...]:
        names = set(self._base.resource_names)
        for info in map(self._nodes.info, self._rows):
            names.update(info.allocatable, info.requested)
        return tuple(sorted(names, key=resource_order))

    def info(self, row: int) -> NodeInfo:
        return self._nodes.info(row) if row in self._rows else self._base.info(row)

    def row_of(self, name: str) -> int | None:
        return self._base.row_of(name)

    def rows_of(self, names: Iterable[str]) -> list[int | None]:
        return self._base.rows_of(names)

    def allocatable(self, resource: str) -> Int64Column:
        if not self._has_new_facts:
            return self._base.allocatable(resource)
        return self._patched("allocatable", resource, lambda: self._base.allocatable(resource))

    def requested(self, resource: str) -> Int64Column:
        return self._patched("requested", resource, lambda: self._base.requested(resource))

    def scored_requests(self, resource: str) -> Int64Column:
        return self._patched("scored_requests", resource, lambda: self._base.scored_requests(resource))

    def what_if_version(self) -> int:
        return self._base.what_if_version()

    def _patched(
        self,
        family: str,
        name: str,
        column: Callable[[], Int64Column],
        cells: Callable[[], Int64Column | int] | None = None,
    ) -> Int64Column:
        """Return a column of the base with other cells, which are by default those of the nodes."""
        copy = self._copies.get((family, name))
        if copy is None:
            copy = column().copy()
            copy[self._nodes.rows] = self._nodes.cells(family, name) if cells is None else cells()
            copy.flags.writeable = False
            self._copies[family, name] = copy
        return copy

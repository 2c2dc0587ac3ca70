"""The snapshot that a cache keeps up to date, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import cast

import numpy as np

from kdsl.base.change_log import ChangeLog
from kdsl.base.frozen_map import NO_STRINGS
from kdsl.base.kept import Kept
from kdsl.base.resources import resource_order
from kdsl.cluster.objects.images import ImageSpread, NodeImage
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.catalog import Catalog
from kdsl.cluster.snapshot.columns import Bounds, ColumnLayout, Columns, Int64Column, grown, readable
from kdsl.cluster.snapshot.node_classes import NodeClasses, fact_class_of, node_class_of
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot


class SharedState:
    """The parts of a live snapshot that all nodes share, as they are now: a key of the answers that depend on
    them.
    """

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: LiveSnapshot) -> None:
        self.snapshot = snapshot


class LiveSnapshot(Snapshot):
    """The snapshot that a cache keeps up to date, row by row.

    Only the cache writes to it, between two cycles. `fact_changes` and `usage_changes` log the written rows.
    `node_classes` holds the node class of each row, `fact_classes` the class without its pods.
    `shared_state` is replaced when the number of nodes, their images or the catalog change.

    `affinity_version` changes when a node is written whose pods have affinity terms: while it is the same, no
    term has appeared, but some may have gone.
    """

    is_overlay = False
    has_live_facts = True

    def __init__(self, catalog: Catalog | None = None, spread: ImageSpread | None = None) -> None:
        self.live = self
        self.shared_state = SharedState(self)
        self.catalog = Catalog() if catalog is None else catalog
        self._spread = ImageSpread() if spread is None else spread
        self.version = 0
        self.images_version = 0
        self.nodes_version = 0
        self.affinity_version = 0
        self.order = np.zeros(0, np.intp)
        self._names: list[str] = []
        self.names = self._names
        self._infos: list[NodeInfo | None] = []
        self.labels: list[Mapping[str, str]] = []
        """The labels of the node of each row: a reader of one key of all nodes needs no other facts."""
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._static_version = self._usage_version = self._pod_counts = np.zeros(0, np.int64)
        self._static_view = self._usage_view = self._counts_view = readable(np.zeros(0, np.int64))
        # A node without pods may have no usage written.
        self.column_layout = layout = ColumnLayout()
        """Its mark changes with the arrays and bounds of amounts and of `pod_counts`."""
        self._allocatable = Columns(False, layout)
        self._requested, self._scored = Columns(True, layout), Columns(True, layout)
        self._families = {
            "allocatable": self._allocatable,
            "requested": self._requested,
            "scored_requests": self._scored,
        }
        self._resource_names: tuple[str, ...] | None = ()
        self._versions = count(1)
        self._what_if_versions = count(-1, -1)
        self.fact_changes, self.usage_changes = ChangeLog[int](), ChangeLog[int]()
        self.node_classes, self.fact_classes = NodeClasses(node_class_of), NodeClasses(fact_class_of)
        self.kept = Kept(self)
        """Values that readers cache with the snapshot, each under its own key; dropped with the snapshot."""

    @property
    def changed_rows(self) -> frozenset[int]:
        return frozenset()

    @property
    def static_version(self) -> Int64Column:
        return self._static_view

    @property
    def usage_version(self) -> Int64Column:
        return self._usage_view

    @property
    def pod_counts(self) -> Int64Column:
        return self._counts_view

    @property
    def resource_names(self) -> tuple[str, ...]:
        if self._resource_names is None:
            names = {*self._allocatable.names, *self._requested.names}
            self._resource_names = tuple(sorted(names, key=resource_order))
        return self._resource_names

    def info(self, row: int) -> NodeInfo:
        info = self._infos[row]
        if info is None:
            raise KeyError(f"row {row} is free")
        return info

    def infos(self, rows: Rows) -> list[NodeInfo]:
        """Return the nodes of some rows, none of which is free."""
        return cast("list[NodeInfo]", list(map(self._infos.__getitem__, rows.tolist())))

    def nodes_by_row(self) -> list[NodeInfo | None]:
        """Return the node of each row, None for free rows."""
        return self._infos.copy()

    def image(self, name: str) -> tuple[Rows, list[NodeImage]]:
        """Return the rows of the nodes that have an image under a name, and the image on each."""
        homes, images = self._spread.homes(name)
        return np.fromiter(map(self._rows.__getitem__, homes), np.intp, len(homes)), images

    def row_of(self, name: str) -> int | None:
        return self._rows.get(name)

    def rows_of(self, names: Iterable[str]) -> list[int | None]:
        return list(map(self._rows.get, names))

    def allocatable(self, resource: str) -> Int64Column:
        return self._allocatable.column(resource)

    def requested(self, resource: str) -> Int64Column:
        return self._requested.column(resource)

    def scored_requests(self, resource: str) -> Int64Column:
        return self._scored.column(resource)

    def bounds(self, family: str, resource: str) -> Bounds:
        """Return bounds of the amounts of a resource in a family (`allocatable`, `requested`,
        `scored_requests`), over all nodes in use.

        Equal bounds are the same object.
        """
        return self._families[family].bounds(resource)

    def what_if_version(self) -> int:
        return next(self._what_if_versions)

    def set_nodes(self, names: Iterable[str]) -> None:
        """Assign a row to each node of `names`, which are in visiting order; free the rows of all others."""
        wanted = tuple(names)
        kept = set(wanted)
        for name in [name for name in self._rows if name not in kept]:
            self._clear(self._rows.pop(name))
        missing = [name for name in wanted if name not in self._rows]
        self._grow(len(missing) - len(self._free))
        for name in missing:
            row = self._free.pop()
            self._rows[name] = row
            self._names[row] = name
        self.order = np.fromiter(map(self._rows.__getitem__, wanted), np.intp, len(wanted))
        self.order.flags.writeable = False
        self.version = self.nodes_version = self.images_version = next(self._versions)
        self.shared_state = SharedState(self)

    def set_facts(self, info: NodeInfo) -> None:
        """Write the facts of a node."""
        row = self._rows[info.name]
        self._infos[row] = info
        self.labels[row] = info.facts.labels.entries
        self._allocatable.write(row, info.allocatable.amounts())
        self._resource_names = None
        self.fact_changes.note(row, len(self._infos))
        self._classify(self.node_classes, row, info)
        self._classify(self.fact_classes, row, info)
        self.version = self._static_version[row] = next(self._versions)
        if info.affine_pods:
            self.affinity_version = self.version

    def set_usage(self, info: NodeInfo) -> None:
        """Write the pods of a node."""
        row = self._rows[info.facts.name]
        self._infos[row] = info
        self._requested.write(row, info.requested.amounts())
        self._scored.write(row, info.scored_requests.amounts())
        self._resource_names = None
        self._pod_counts[row] = len(info.pods)
        self.usage_changes.note(row, len(self._infos))
        self._classify(self.node_classes, row, info)
        self.version = self._usage_version[row] = next(self._versions)
        if info.affine_pods:
            self.affinity_version = self.version

    def set_images(self) -> None:
        """Record a change of the nodes that have an image."""
        self.version = self.images_version = next(self._versions)
        self.shared_state = SharedState(self)

    def set_catalog(self) -> None:
        """Record a change of the catalog."""
        self.version = next(self._versions)
        self.shared_state = SharedState(self)

    def _classify(self, classes: NodeClasses, row: int, info: NodeInfo) -> None:
        if classes.size > classes.most:
            classes.renew()
            for other in self.order.tolist():
                known = self._infos[other]
                if known is not None:
                    classes.put(other, known)
        classes.put(row, info)

    def _clear(self, row: int) -> None:
        self._names[row] = ""
        self._infos[row] = None
        self.labels[row] = NO_STRINGS.entries
        for columns in (self._allocatable, self._requested, self._scored):
            columns.clear(row)
        self._pod_counts[row] = 0
        self.node_classes.clear(row)
        self.fact_classes.clear(row)
        self.fact_changes.note(row, len(self._infos))
        self.usage_changes.note(row, len(self._infos))
        self._static_version[row] = self._usage_version[row] = next(self._versions)
        self._free.append(row)

    def _grow(self, by: int) -> None:
        if by <= 0:
            return
        old, rows = len(self._names), len(self._names) + by
        self._names.extend([""] * by)
        self._infos.extend([None] * by)
        self.labels.extend([NO_STRINGS.entries] * by)
        self._free.extend(reversed(range(old, rows)))
        for columns in (self._allocatable, self._requested, self._scored):
            columns.resize(rows)
        self._static_version = grown(self._static_version, rows)
        self._usage_version = grown(self._usage_version, rows)
        self._pod_counts = grown(self._pod_counts, rows)
        self.node_classes.grow(rows)
        self.fact_classes.grow(rows)
        self._static_view = readable(self._static_version)
        self._usage_view = readable(self._usage_version)
        self._counts_view = readable(self._pod_counts)

"""Answers shared between pods that look alike, kept as long as what they were computed from stays the same.

Everything follows from what the checker says a rule reads. The `pod.*` fields are the pod's signature: two
pods with equal values get equal answers. What a rule reads of nodes says which versions of the snapshot an
answer depends on. Rules that read anything else, and rules that read what no two pods share, are not
memoised; neither are overlays, which last for one question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.frozen_map import FrozenMap
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.plan.views import attribute_of

MAX_BYTES = 16 << 20
"""What the answers of one rule may take; the signatures used longest ago go first. `MIN_SIGNATURES` stay in
any case.
"""
MIN_SIGNATURES = 4

_POD = "pod."
_USAGE = "node.usage"
_IMAGES = "cluster.images"
_NODES = "cluster.nodes"
_KNOWN = frozenset(("node.static", _USAGE, _IMAGES, _NODES))
_UNIQUE = frozenset(("pod.uid", "pod.name"))

_NEVER = -1  # versions of a snapshot start at 0

S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the answers of a rule depend on; `pod_fields` are attributes of `PodInfo`."""

    pod_fields: tuple[str, ...]
    on_usage: bool
    on_images: bool
    on_nodes: bool

    @classmethod
    def of(cls, reads: frozenset[str]) -> Dependencies | None:
        """Return the dependencies of a rule with these reads; None where its answers cannot be shared."""
        pod = {word for word in reads if word.startswith(_POD)}
        if reads - pod - _KNOWN or reads & _UNIQUE:
            return None
        fields = tuple(attribute_of(word.removeprefix(_POD)) for word in sorted(pod))
        return cls(fields, _USAGE in reads, _IMAGES in reads, _NODES in reads)

    def signature(self, pod: PodInfo) -> Hashable:
        """Return what the rule sees of a pod: maps with their order, which a loop over them shows."""
        values = [getattr(pod, field) for field in self.pod_fields]
        return tuple([tuple(value.items()) if isinstance(value, FrozenMap) else value for value in values])

    def stamps(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return one number per row that changes with what the rule reads of the node.

        Versions come from one counter that only rises, so the later of two tells of a change in either.
        """
        if not self.on_usage:
            return snapshot.static_version
        return np.maximum(snapshot.static_version, snapshot.usage_version)

    def epoch(self, snapshot: Snapshot) -> tuple[int, int]:
        """Return what changes with the parts of the cluster that the rule reads."""
        return (
            snapshot.images_version if self.on_images else 0,
            snapshot.nodes_version if self.on_nodes else 0,
        )


class Memo(Generic[S]):
    """The answers of one rule, by pod signature and row.

    Thread-safe for calls with disjoint rows over one snapshot; the snapshot changes only between cycles.
    """

    def __init__(self, dependencies: Dependencies, dtype: np.dtype[S]) -> None:
        self._dependencies = dependencies
        self._dtype = dtype
        self._columns: OrderedDict[Hashable, _Column[S]] = OrderedDict()
        self._snapshot: Snapshot | None = None
        self._version = _NEVER
        self._stamps = np.zeros(0, dtype=np.int64)
        self._lock = Lock()

    def answers(self, pod: PodInfo, nodes: NodeSet, compute: Callable[[NodeSet], NDArray[S]]) -> NDArray[S]:
        """Return one answer per node; `compute` is asked for those that are not known or out of date."""
        snapshot = nodes.snapshot
        if snapshot.is_overlay:
            return compute(nodes)
        signature = self._dependencies.signature(pod)
        with self._lock:
            column = self._column(signature, snapshot)
            stamps = self._stamps
        rows = nodes.rows.astype(np.intp)
        stale = np.flatnonzero(column.stamps.take(rows) != stamps.take(rows))
        if len(stale):
            stale_rows = rows[stale]
            column.values[stale_rows] = compute(nodes.take(stale))
            column.stamps[stale_rows] = stamps[stale_rows]
        return column.values.take(rows)

    def _column(self, signature: Hashable, snapshot: Snapshot) -> _Column[S]:
        """Return the column of a signature, brought up to the snapshot."""
        if snapshot is not self._snapshot:
            # INVARIANT: versions are comparable within one snapshot object, which a cache keeps up to date.
            self._columns.clear()
            self._snapshot, self._version = snapshot, _NEVER
        if snapshot.version != self._version:
            self._stamps, self._version = self._dependencies.stamps(snapshot), snapshot.version
        rows, epoch = len(self._stamps), self._dependencies.epoch(snapshot)
        column = self._columns.get(signature)
        if column is None or column.epoch != epoch:
            column = _Column(np.zeros(0, dtype=self._dtype), np.zeros(0, dtype=np.int64), epoch)
            self._columns[signature] = column
        column.grow(rows)
        self._columns.move_to_end(signature)
        capacity = max(MIN_SIGNATURES, MAX_BYTES // max(1, column.size))
        while len(self._columns) > capacity:
            self._columns.popitem(last=False)
        return column


@dataclass(slots=True)
class _Column(Generic[S]):
    """The answers for one signature by row, and the stamps they were computed at."""

    values: NDArray[S]
    stamps: NDArray[np.int64]
    epoch: tuple[int, int]

    @property
    def size(self) -> int:
        return self.values.nbytes + self.stamps.nbytes

    def grow(self, rows: int) -> None:
        """Make room for `rows` rows; nothing is known of the new ones."""
        missing = rows - len(self.stamps)
        if missing > 0:
            self.values = np.concatenate((self.values, np.zeros(missing, dtype=self.values.dtype)))
            self.stamps = np.concatenate((self.stamps, np.full(missing, _NEVER, dtype=np.int64)))

"""The nodes of a cluster by how their devices look, kept between attempts: one node answers for its group."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from kdsl.cluster.snapshot.changed_rows import ChangedRows

from kdsl_plugins.dynamic_resources.pools import MAX_LOOKS

if TYPE_CHECKING:
    from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
    from kdsl.cluster.snapshot.snapshot import Rows
    from numpy.typing import NDArray

    from kdsl_plugins.dynamic_resources.alike import Alike
    from kdsl_plugins.dynamic_resources.looks import Looks
    from kdsl_plugins.dynamic_resources.pools import SliceIndex
    from kdsl_plugins.dynamic_resources.usage import Usage

_ByReads: TypeAlias = dict[tuple["Looks", bool], "_Groups"]

ALONE: Final = -1
"""The number of a node that looks like no other."""
_UNKNOWN: Final = -2
MAX_KEYS: Final = 4096
"""The most groups that nodes were ever in, beside two for each node; then they are numbered anew."""


class NodeGroups:
    """The groups of the nodes of a live snapshot, by what requests read of devices. Thread-safe."""

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        # Each engine over the snapshot has an index of slices.
        self._by_slices: WeakKeyDictionary[SliceIndex, _ByReads] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, rows: Rows, alike: Alike) -> NDArray[np.int32]:
        """Return the number of the group of each row; `ALONE` for a node that looks like no other.

        AllocationError where a node's devices cannot be read.
        """
        with self._lock:
            by_reads = self._by_slices.setdefault(alike.slices, {})
            groups = by_reads.get(alike.reads)
            if groups is None or groups.usage is not alike.usage:
                if len(by_reads) >= MAX_LOOKS:
                    by_reads.clear()
                groups = by_reads[alike.reads] = _Groups(self._live, alike.usage)
            return groups.of(rows, alike)


class _Groups:
    """The groups for requests that read the same."""

    def __init__(self, live: LiveSnapshot, usage: Usage) -> None:
        self._live, self.usage = live, usage
        self._changed = ChangedRows()
        # The changes of the usage that are included.
        self._position = -1
        self._by_key: dict[object, int] = {}
        self._by_row = np.zeros(0, np.int32)

    def of(self, rows: Rows, alike: Alike) -> NDArray[np.int32]:
        self._forget_changed(alike)
        found: NDArray[np.int32] = self._by_row.take(rows)
        for place in (found == _UNKNOWN).nonzero()[0].tolist():
            row = rows.item(place)
            key = alike.key_on(self._live.info(row))
            number = ALONE if key is None else self._by_key.setdefault(key, len(self._by_key))
            self._by_row[row] = found[place] = number
        return found

    def _forget_changed(self, alike: Alike) -> None:
        """Forget the groups of nodes that changed, or whose devices came into use or became free."""
        live, changes = self._live, self.usage.changes
        rows, pools = self._changed.take(live.fact_changes), changes.since(self._position)
        self._position = changes.position
        nodes = None if pools is None else alike.slices.nodes_with(pools)
        if rows is None or nodes is None or len(self._by_key) >= MAX_KEYS + 2 * len(live.names):
            self._by_key.clear()
            self._by_row = np.full(len(live.names), _UNKNOWN, np.int32)
            return
        missing = len(live.names) - len(self._by_row)
        if missing > 0:
            self._by_row = np.pad(self._by_row, (0, missing), constant_values=_UNKNOWN)
        self._by_row[[*rows, *(row for row in live.rows_of(nodes) if row is not None)]] = _UNKNOWN

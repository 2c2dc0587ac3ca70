"""The numbers of CSI volumes on nodes, by driver: for single nodes, and for all as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.snapshot.catalog import CatalogWord
from kdsl.cluster.snapshot.changed_rows import ChangedRows
from kdsl.cluster.storage.csi_volumes import (
    ALL_PLUGINS,
    CsiVolumes,
    attached_to,
    csi_volumes,
    csi_volumes_of,
    mounted_on,
)

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog
    from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
    from kdsl.cluster.snapshot.snapshot import Rows

NO_LIMIT: Final = 2**63 - 1
"""The limit of a driver without one."""
Counts = NDArray[np.int64]


def volume_limit(driver: str, node: NodeInfo, catalog: Catalog) -> int:
    """Return the largest number of a driver's volumes on a node, `NO_LIMIT` without a limit."""
    return catalog.storage.limits_of(node.name).get(driver, NO_LIMIT)


def used_volumes(driver: str, node: NodeInfo, catalog: Catalog) -> int:
    """Return the number of a driver's volumes that pods on a node mount, or that are attached to it."""
    return _count(driver, _used_on(node, mounted_on(node, catalog), catalog))


def new_volumes(pod: PodInfo, driver: str, node: NodeInfo, catalog: Catalog) -> int:
    """Return the number of a driver's volumes of a pod that no pod on a node mounts."""
    mounted = mounted_on(node, catalog)
    wanted = csi_volumes_of(pod, node.name, catalog)
    return _count(driver, {volume: of for volume, of in wanted.items() if volume not in mounted})


class VolumeCounts:
    """The counts of all rows of a live snapshot, updated as pods and volumes come and go. Thread-safe:
    between two changes of the cluster nothing changes.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._lock = Lock()
        self._changed = ChangedRows()
        # The versions of all storage objects, and of the CSI nodes and the names of rows.
        self._storage_version = -1
        self._nodes_versions = (-1, -1)
        # By row with volumes or claims: the volumes that pods mount, and all that are used.
        self._volumes: dict[int, tuple[CsiVolumes, CsiVolumes]] = {}
        self._rows_of: dict[str, set[int]] = {}
        self._used: dict[str, Counts] = {}
        self._limits: dict[str, Counts] = {}

    @staticmethod
    def of(live: LiveSnapshot) -> VolumeCounts:
        """Return the counts that are kept with a snapshot, up to date."""
        counts = live.kept.get(VolumeCounts)
        if counts is None:
            counts = live.kept.setdefault(VolumeCounts, VolumeCounts(live))
        assert isinstance(counts, VolumeCounts)
        counts._refresh()
        return counts

    def limits(self, driver: str, rows: Rows) -> Counts:
        """Return `volume_limit` for nodes."""
        with self._lock:
            found = self._limits.get(driver)
            if found is None:
                live, limits_of = self._live, self._live.catalog.storage.limits_of
                found = self._limits[driver] = np.full(len(live.names), NO_LIMIT)
                for row in live.order.tolist():
                    found[row] = limits_of(live.names[row]).get(driver, NO_LIMIT)
            return found.take(rows)

    def used(self, driver: str, rows: Rows) -> Counts:
        """Return `used_volumes` for nodes."""
        found = self._used.get(driver)
        return np.zeros(len(rows), np.int64) if found is None else found.take(rows)

    def new(self, pod: PodInfo, driver: str, rows: Rows) -> Counts:
        """Return `new_volumes` for nodes."""
        live, catalog = self._live, self._live.catalog
        wanted = [volume for volume, of in csi_volumes(pod, (), catalog).items() if of == driver]
        if len(wanted) < _count(driver, csi_volumes(pod, ALL_PLUGINS, catalog)):
            # Some volumes are the driver's on nodes where it has taken over a built-in plugin.
            nodes = map(live.info, rows.tolist())
            return np.fromiter(
                (new_volumes(pod, driver, node, catalog) for node in nodes), np.int64, len(rows)
            )
        counts = np.full(len(live.names), len(wanted))
        for volume in wanted:
            for row in self._rows_of.get(volume, ()):
                counts[row] -= 1
        return counts.take(rows)

    def _refresh(self) -> None:
        with self._lock:
            live, storage = self._live, self._live.catalog.storage
            changed = self._changed.take(live.fact_changes, live.usage_changes)
            version = live.catalog.version(CatalogWord.STORAGE)
            versions = (storage.csi_nodes_version, live.nodes_version)
            if changed is None or versions != self._nodes_versions:
                self._volumes, self._rows_of, self._used, self._limits = {}, {}, {}, {}
                self._write(live.order.tolist())
            elif version != self._storage_version:
                attached = [live.row_of(node) for node in storage.attached_nodes]
                self._write({*changed, *self._volumes, *(row for row in attached if row is not None)})
            else:
                self._write(changed)
            self._storage_version, self._nodes_versions = version, versions

    def _write(self, rows: Iterable[int]) -> None:
        """Count the volumes of some rows again."""
        live = self._live
        for row in rows:
            mounted, used = self._volumes.pop(row, ({}, {}))
            self._add(row, mounted, used, -1)
            if live.names[row]:
                node = live.info(row)
                mounted = mounted_on(node, live.catalog)
                used = _used_on(node, mounted, live.catalog)
                # A claim may get a volume later.
                if used or any(pod.volumes for pod in node.pods):
                    self._volumes[row] = mounted, used
                    self._add(row, mounted, used, 1)

    def _add(self, row: int, mounted: CsiVolumes, used: CsiVolumes, sign: int) -> None:
        for volume in mounted:
            rows = self._rows_of.setdefault(volume, set())
            if sign > 0:
                rows.add(row)
            else:
                rows.discard(row)
                if not rows:
                    del self._rows_of[volume]
        for driver, count in Counter(used.values()).items():
            counts = self._used.get(driver)
            if counts is None:
                counts = self._used[driver] = np.zeros(len(self._live.names), np.int64)
            counts[row] += sign * count


def _used_on(node: NodeInfo, mounted: CsiVolumes, catalog: Catalog) -> CsiVolumes:
    return {**attached_to(node.name, catalog), **mounted}


def _count(driver: str, volumes: CsiVolumes) -> int:
    return sum([of == driver for of in volumes.values()])

"""The numbers of CSI volumes on nodes, by driver: for single nodes, and for all as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.api.storage_objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
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
_SPARE: Final = 64
"""The cells for rows to come."""
Counts = NDArray[np.int64]
K = TypeVar("K", bound=Hashable)


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


_Name = tuple[str, str]
"""Kind and key of a storage object."""


class _RowVolumes(NamedTuple):
    """The volumes of a node: those that its pods mount, and all that are used. `names` are the storage
    objects that decide.
    """

    mounted: CsiVolumes
    used: CsiVolumes
    names: frozenset[_Name]


_NOTHING: Final = _RowVolumes({}, {}, frozenset())


class VolumeCounts:
    """The counts of all rows of a live snapshot, updated as pods and volumes come and go. Thread-safe:
    between two changes of the cluster nothing changes.
    """

    def __init__(self, live: LiveSnapshot) -> None:
        self._live = live
        self._lock = Lock()
        self._changed = ChangedRows()
        self._position = self._csi_nodes_version = self._nodes_version = -1
        self._volumes: dict[int, _RowVolumes] = {}
        self._rows_of_volumes: dict[str, set[int]] = {}
        self._rows_of_names: dict[_Name, set[int]] = {}
        self._used: dict[str, Counts] = {}
        self._limits: dict[str, Counts] = {}

    @staticmethod
    def of(live: LiveSnapshot) -> VolumeCounts:
        """Return the counts that are kept with a snapshot, up to date."""
        counts: VolumeCounts = live.kept[VolumeCounts]
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
            each = [new_volumes(pod, driver, live.info(row), catalog) for row in rows.tolist()]
            return np.array(each, np.int64)
        counts = np.full(len(live.names), len(wanted))
        for volume in wanted:
            for row in self._rows_of_volumes.get(volume, ()):
                counts[row] -= 1
        return counts.take(rows)

    def _refresh(self) -> None:
        with self._lock:
            live, storage = self._live, self._live.catalog.storage
            changed = self._changed.take(live.fact_changes, live.usage_changes)
            named = storage.changes.since(self._position)
            has_other_csi_nodes = storage.csi_nodes_version != self._csi_nodes_version
            if has_other_csi_nodes or live.nodes_version != self._nodes_version:
                self._limits = {}
            missing = [len(live.names) - len(counts) for counts in self._used.values()]
            if any(each > 0 for each in missing):
                spare = np.zeros(max(missing) + _SPARE, np.int64)
                self._used = {driver: np.append(counts, spare) for driver, counts in self._used.items()}
            if (
                changed is None
                or named is None
                or has_other_csi_nodes
                or any(kind == StorageClass.KIND for kind, _ in named)
            ):
                self._volumes, self._rows_of_volumes, self._rows_of_names, self._used = {}, {}, {}, {}
                self._write(live.order.tolist())
            elif changed or named:
                self._write({*changed, *self._rows_of(named)})
            self._position, self._nodes_version = storage.changes.position, live.nodes_version
            self._csi_nodes_version = storage.csi_nodes_version

    def _rows_of(self, named: Iterable[_Name]) -> Iterator[int]:
        """Yield the rows for which storage objects count."""
        live = self._live
        for name in named:
            yield from self._rows_of_names.get(name, ())
            if name[0] == VolumeAttachment.KIND:
                node = live.catalog.storage.node_of_attachment(name[1])
                row = None if node is None else live.row_of(node)
                if row is not None:
                    yield row

    def _write(self, rows: Iterable[int]) -> None:
        """Count the volumes of some rows again."""
        live, catalog = self._live, self._live.catalog
        for row in list(rows):
            self._add(row, self._volumes.pop(row, _NOTHING), -1)
            if live.names[row]:
                node = live.info(row)
                names = frozenset(_names_on(node, catalog))
                if names or any(pod.volumes for pod in node.pods):
                    mounted = mounted_on(node, catalog)
                    volumes = _RowVolumes(mounted, _used_on(node, mounted, catalog), names)
                    self._volumes[row] = volumes
                    self._add(row, volumes, 1)

    def _add(self, row: int, volumes: _RowVolumes, sign: int) -> None:
        """Add the volumes of a row to the counts and indexes, or remove them."""
        for volume in volumes.mounted:
            _index(self._rows_of_volumes, volume, row, sign)
        for name in volumes.names:
            _index(self._rows_of_names, name, row, sign)
        for driver, count in Counter(volumes.used.values()).items():
            counts = self._used.get(driver)
            if counts is None:
                counts = self._used[driver] = np.zeros(len(self._live.names), np.int64)
            counts[row] += sign * count


def _names_on(node: NodeInfo, catalog: Catalog) -> Iterator[_Name]:
    """Yield the storage objects that decide which volumes a node uses, apart from classes and CSI nodes."""
    for pod in node.pods:
        for volume in pod.volumes:
            if volume.claim_name:
                key = f"{pod.namespace}/{volume.claim_name}"
                yield PersistentVolumeClaim.KIND, key
                claim = catalog.claims.get(key)
                if claim is not None and claim.spec.volume_name:
                    yield PersistentVolume.KIND, claim.spec.volume_name
    for attachment in catalog.storage.attached_to(node.name):
        yield VolumeAttachment.KIND, attachment.metadata.name
        yield PersistentVolume.KIND, attachment.spec.source.persistent_volume_name


def _index(rows_of: dict[K, set[int]], key: K, row: int, sign: int) -> None:
    """Add a row to an index, or remove it."""
    if sign > 0:
        rows_of.setdefault(key, set()).add(row)
        return
    rows_of[key].discard(row)
    if not rows_of[key]:
        del rows_of[key]


def _used_on(node: NodeInfo, mounted: CsiVolumes, catalog: Catalog) -> CsiVolumes:
    return {**attached_to(node.name, catalog), **mounted}


def _count(driver: str, volumes: CsiVolumes) -> int:
    return sum([of == driver for of in volumes.values()])

"""The volumes of storage classes that claims may get, kept between pods: only changed ones are read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.snapshot.catalog import Catalog

from kdsl_plugins.volume_binding.free_volumes import FreeVolumes

_ClaimKey = tuple[str, str]
"""The namespace and the name of a claim."""


class ClassVolumes:
    """The volumes of one storage class: those that are `free`, and those whose claimRef names a claim."""

    def __init__(self, volumes: Iterable[VolumeInfo] = ()) -> None:
        given = list(volumes)
        self.free = FreeVolumes(volume for volume in given if volume.is_free)
        self._set_aside: dict[_ClaimKey, dict[str, VolumeInfo]] = {}
        self._claims: dict[str, _ClaimKey] = {}
        for volume in given:
            self._set_volume_aside(volume)

    def put(self, volume: VolumeInfo) -> None:
        """Add a volume, which must not be there."""
        if volume.is_free:
            self.free.put(volume)
        self._set_volume_aside(volume)

    def remove(self, name: str) -> None:
        """Remove a volume, if it is there."""
        self.free.remove(name)
        claim = self._claims.pop(name, None)
        if claim is not None:
            del self._set_aside[claim][name]
            if not self._set_aside[claim]:
                del self._set_aside[claim]

    def set_aside_for(self, claim: PersistentVolumeClaim) -> Collection[VolumeInfo]:
        """Return the volumes whose claimRef names a claim, by uid where it has one."""
        named = self._set_aside.get((claim.metadata.namespace, claim.metadata.name), {})
        return [volume for volume in named.values() if volume.is_set_aside_for(claim)]

    def _set_volume_aside(self, volume: VolumeInfo) -> None:
        reference = volume.thing.spec.claim_ref
        if reference is not None:
            claim = self._claims[volume.name] = (reference.namespace, reference.name)
            self._set_aside.setdefault(claim, {})[volume.name] = volume


@dataclass(slots=True)
class _Known:
    """The classes that were asked about, with the changes of volumes up to `position`."""

    position: int = -1
    classes: dict[str, ClassVolumes] = field(default_factory=dict)

    def follow(self, catalog: Catalog) -> None:
        """Read the volumes that changed since the last time."""
        storage = catalog.storage
        changed = storage.changes.since(self.position)
        self.position = storage.changes.position
        if changed is None:
            self.classes.clear()
            return
        for name in dict.fromkeys(name for kind, name in changed if kind == PersistentVolume.KIND):
            for each in self.classes.values():
                each.remove(name)
            volume = storage.volumes.get(name)
            known = None if volume is None else self.classes.get(volume.storage_class_name)
            if volume is not None and known is not None:
                known.put(volume)


class CatalogVolumes:
    """The volumes by storage class of each catalog in use; no catalog outlives its other users."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Catalog, _Known] = WeakKeyDictionary()

    def of_class(self, name: str, catalog: Catalog) -> ClassVolumes:
        """Return the volumes of a storage class, as they are now."""
        known = self._known.setdefault(catalog, _Known())
        known.follow(catalog)
        volumes = known.classes.get(name)
        if volumes is None:
            volumes = known.classes[name] = ClassVolumes(catalog.storage.of_class(name))
        return volumes

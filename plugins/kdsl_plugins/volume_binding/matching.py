"""Finds the existing volumes that a claim can get. Facts of k8s.io/component-helpers/storage/volume."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.label_selectors import LabelSelector, read_selector
from kdsl.cluster.objects.volumes import VolumeInfo, storage_in

from kdsl_plugins.volume_binding.class_volumes import ClassVolumes


@dataclass(frozen=True, slots=True)
class Candidates:
    """The volumes that fit a claim, on any node.

    `reserved` are the volumes that name the claim; where there are any, no other volume fits.
    """

    claim: PersistentVolumeClaim
    requested: Quantity
    selector: LabelSelector | None
    modes: frozenset[str]
    reserved: tuple[VolumeInfo, ...]
    volumes: ClassVolumes

    @staticmethod
    def of(claim: PersistentVolumeClaim, volumes: ClassVolumes) -> Candidates:
        """Select from `volumes`, the volumes of the claim's class."""
        requested = requested_by(claim)
        reserved = (each for each in volumes.set_aside_for(claim) if _could_hold(each, claim, requested))
        return Candidates(
            claim,
            requested,
            read_selector(claim.spec.selector),
            frozenset(claim.spec.access_modes),
            tuple(sorted(reserved, key=lambda volume: volume.name)),
            volumes,
        )

    def find(self, labels: Mapping[str, str], taken: Collection[str]) -> VolumeInfo | None:
        """Return the volume that the claim gets on a node with `labels`; `taken` are names of volumes in
        use.
        """
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if volume.can_be_used_on(labels) else None
        for volume in self.volumes.free.near(labels):
            if volume.name not in taken and self._fits(volume) and volume.can_be_used_on(labels):
                return volume
        return None

    def _fits(self, volume: VolumeInfo) -> bool:
        """Return whether a free volume fits the claim."""
        return (
            _could_hold(volume, self.claim, self.requested)
            and self.modes.issubset(volume.thing.spec.access_modes)
            and (self.selector is None or self.selector.matches(volume.labels))
        )


def requested_by(claim: PersistentVolumeClaim) -> Quantity:
    """Return the storage that a claim requests."""
    return storage_in(claim.spec.resources.requests)


def _could_hold(volume: VolumeInfo, claim: PersistentVolumeClaim, requested: Quantity) -> bool:
    thing = volume.thing
    return (
        volume.capacity.nanos >= requested.nanos
        and thing.spec.volume_mode == claim.spec.volume_mode
        and thing.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and thing.metadata.deletion_timestamp is None
    )

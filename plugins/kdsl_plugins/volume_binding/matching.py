"""Finds the existing volumes that a claim can get. Facts of k8s.io/component-helpers/storage/volume."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.label_selectors import read_selector
from kdsl.cluster.objects.volumes import VolumeInfo, storage_in

from kdsl_plugins.volume_binding.free_volumes import FreeVolumes


@dataclass(frozen=True, slots=True)
class Candidates:
    """The volumes that fit a claim, on any node.

    `reserved` are the volumes that name the claim; where there are any, no other volume fits. `free` are the
    others.
    """

    reserved: tuple[VolumeInfo, ...]
    free: FreeVolumes

    @staticmethod
    def of(claim: PersistentVolumeClaim, volumes: Iterable[VolumeInfo]) -> Candidates:
        """Select from `volumes`, the volumes of the claim's class."""
        requested, selector = requested_by(claim), read_selector(claim.spec.selector)
        fitting = [volume for volume in volumes if _could_hold(volume, claim, requested)]
        reserved = (volume for volume in fitting if volume.is_set_aside_for(claim))
        modes = frozenset(claim.spec.access_modes)
        free = (
            volume
            for volume in fitting
            if volume.is_free
            and modes.issubset(volume.thing.spec.access_modes)
            and (selector is None or selector.matches(volume.labels))
        )
        return Candidates(tuple(sorted(reserved, key=lambda volume: volume.name)), FreeVolumes(free))

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of nodes that decide about the volumes."""
        volumes = (*self.reserved, *self.free.in_order)
        return frozenset[str]().union(*(volume.node_label_keys for volume in volumes))

    def find(self, labels: Mapping[str, str], taken: Collection[str]) -> VolumeInfo | None:
        """Return the volume that the claim gets on a node with `labels`; `taken` are names of volumes in
        use.
        """
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if volume.can_be_used_on(labels) else None
        fitting = (
            volume
            for volume in self.free.near(labels)
            if volume.name not in taken and volume.can_be_used_on(labels)
        )
        return next(fitting, None)


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

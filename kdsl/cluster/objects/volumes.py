"""A persistent volume as the scheduler uses it: the facts that matching reads, computed once.

`StorageIndex` creates one for each object of the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.base.frozen_map import FrozenMap, freeze
from kdsl.base.quantity import Quantity
from kdsl.cluster.api.objects import ResourceList, quantity
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.pod_volumes import PodVolume, read_disk
from kdsl.cluster.objects.selectors import NodeSelector

STORAGE: Final = "storage"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation for the storage class, older than the field; it takes precedence over the field."""
AVAILABLE: Final = "Available"


@dataclass(frozen=True, slots=True)
class VolumeInfo:
    """A persistent volume. `thing` is its API object, `disk` its network disk, None for another source.

    Without `node_affinity` every node can reach it.
    """

    thing: PersistentVolume
    labels: FrozenMap[str, str]
    capacity: Quantity
    storage_class_name: str
    node_affinity: NodeSelector | None
    disk: PodVolume | None

    @staticmethod
    def of(volume: PersistentVolume) -> VolumeInfo:
        """Convert a valid API object."""
        meta, spec = volume.metadata, volume.spec
        required = spec.node_affinity.required
        return VolumeInfo(
            thing=volume,
            labels=freeze(meta.labels),
            capacity=storage_in(spec.capacity),
            storage_class_name=meta.annotations.get(BETA_CLASS, spec.storage_class_name),
            node_affinity=None if required is None else NodeSelector.of(required),
            disk=read_disk(meta.name, spec),
        )

    @property
    def name(self) -> str:
        return self.thing.metadata.name

    @property
    def is_free(self) -> bool:
        """Return whether the volume may be given to a claim that it fits."""
        return self.thing.status.phase == AVAILABLE and self.thing.spec.claim_ref is None

    def is_set_aside_for(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the volume's claimRef names `claim`, by uid where it has one."""
        reference, meta = self.thing.spec.claim_ref, claim.metadata
        if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
            return False
        return reference.uid in ("", meta.uid)

    def can_be_used_on(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with `labels` can reach the volume. Affinity does not name nodes by field."""
        return self.node_affinity is None or self.node_affinity.matches(_Labelled(labels))

    @property
    def node_label_keys(self) -> frozenset[str]:
        """The labels of nodes that `can_be_used_on` reads."""
        terms = () if self.node_affinity is None else self.node_affinity.terms
        return frozenset([one.key for term in terms for one in term.labels])


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A node with labels only."""

    labels: Mapping[str, str]

    @property
    def name(self) -> str:
        return ""


def storage_in(amounts: ResourceList) -> Quantity:
    """Return the amount of storage among `amounts`; zero where it is missing."""
    written = amounts.get(STORAGE)
    return Quantity(0) if written is None else quantity(written)

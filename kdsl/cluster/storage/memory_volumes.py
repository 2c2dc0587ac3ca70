"""Volumes bound in memory: what the volume controller and the provisioners of a cluster would do, at once.

Simulations and rule tests use it where a live scheduler asks the API server and waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kdsl.cluster.api.objects import (
    CsiVolume,
    NodeSelectorRequirement,
    NodeSelectorSpec,
    NodeSelectorTerm,
    ObjectMeta,
)
from kdsl.cluster.api.storage_objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
    VolumeStatus,
)
from kdsl.cluster.objects.volumes import STORAGE
from kdsl.cluster.storage.claims import BIND_COMPLETED, class_of
from kdsl.cluster.storage.volume_plan import VolumePlan, reference_to

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.cache import ClusterCache

BOUND = "Bound"


class MemoryVolumes:
    """A `VolumeBinder` for which `cluster` is all there is. `cluster` may be set to another one."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def assume(self, plan: VolumePlan) -> None:
        """Let later pods see what the plan takes."""
        for thing in plan.changes():
            self.cluster.assume_object(thing)

    def forget(self, plan: VolumePlan) -> None:
        """Give back what the plan took, where it is not bound yet."""
        for thing in plan.changes():
            self.cluster.forget_object(thing)

    def bind(self, pod: PodInfo, plan: VolumePlan) -> None:
        """Bind claims and volumes to each other, making the volumes that are to be provisioned."""
        for change in plan.changes():
            if isinstance(change, PersistentVolume):
                self.cluster.put(replace(change, status=VolumeStatus(phase=BOUND)))
        for binding in plan.bindings:
            self.cluster.put(_bound(binding.claim, binding.volume.metadata.name))
        for claim in plan.provisions:
            volume = self._provisioned(claim, plan.node)
            self.cluster.put(volume)
            self.cluster.put(_bound(claim, volume.metadata.name))

    def _provisioned(self, claim: PersistentVolumeClaim, node: str) -> PersistentVolume:
        """Return the volume that a provisioner makes: of the size asked for, and reachable where its driver
        says that the volumes of `node` are.
        """
        spec, storage_class = claim.spec, class_of(claim)
        catalog = self.cluster.snapshot().catalog
        name = f"pvc-{claim.metadata.uid}"
        return PersistentVolume(
            metadata=ObjectMeta(name=name, uid=name),
            spec=PersistentVolumeSpec(
                access_modes=spec.access_modes,
                capacity={STORAGE: spec.resources.requests.get(STORAGE, 0)},
                claim_ref=reference_to(claim),
                csi=CsiVolume(driver=catalog.storage_classes[storage_class].provisioner, volume_handle=name),
                node_affinity=self._topology(catalog.storage_classes[storage_class].provisioner, node),
                storage_class_name=storage_class,
                volume_mode=spec.volume_mode,
            ),
            status=VolumeStatus(phase=BOUND),
        )

    def _topology(self, driver: str, node: str) -> VolumeNodeAffinity:
        snapshot = self.cluster.snapshot()
        csi_node, info = snapshot.catalog.csi_nodes.get(node), snapshot.node(node)
        drivers = () if csi_node is None else csi_node.spec.drivers
        labels = {} if info is None else info.labels
        places = [
            NodeSelectorRequirement(key=key, operator="In", values=[labels[key]])
            for one in drivers
            if one.name == driver
            for key in one.topology_keys
            if key in labels
        ]
        if not places:
            return VolumeNodeAffinity()
        return VolumeNodeAffinity(
            required=NodeSelectorSpec(node_selector_terms=[NodeSelectorTerm(match_expressions=places)])
        )


def _bound(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    meta = claim.metadata
    return replace(
        claim,
        metadata=replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"}),
        spec=replace(claim.spec, volume_name=volume),
        status=replace(claim.status, phase=BOUND),
    )

"""Volumes bound in memory, at once, in place of the volume controller and the provisioners of a cluster.

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
    """A `VolumeBinder` that changes `cluster` only. `cluster` may be replaced by another one."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def assume(self, plan: VolumePlan) -> None:
        """Assume the objects that the plan changes, so that later pods cannot use them."""
        for api_object in plan.changes():
            self.cluster.assume_object(api_object)

    def forget(self, plan: VolumePlan) -> None:
        """Undo the assumptions of the plan that are not bound yet."""
        for api_object in plan.changes():
            self.cluster.forget_object(api_object)

    def bind(self, pod: PodInfo, plan: VolumePlan) -> None:
        """Bind claims and volumes to each other; create the volumes to be provisioned."""
        for change in plan.changes():
            if isinstance(change, PersistentVolume):
                self.cluster.put(replace(change, status=VolumeStatus(phase=BOUND)))
        for binding in plan.bindings:
            self.cluster.put(_bound_claim(binding.claim, binding.volume.metadata.name))
        for claim in plan.provisions:
            volume = self._provisioned(claim, plan.node)
            self.cluster.put(volume)
            self.cluster.put(_bound_claim(claim, volume.metadata.name))

    def _provisioned(self, claim: PersistentVolumeClaim, node: str) -> PersistentVolume:
        """Return the volume that a provisioner would create.

        It has the requested size, and the topology that its driver reports for `node`.
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
        requirements = [
            NodeSelectorRequirement(key=key, operator="In", values=[labels[key]])
            for one in drivers
            if one.name == driver
            for key in one.topology_keys
            if key in labels
        ]
        if not requirements:
            return VolumeNodeAffinity()
        return VolumeNodeAffinity(
            required=NodeSelectorSpec(node_selector_terms=[NodeSelectorTerm(match_expressions=requirements)])
        )


def _bound_claim(claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
    meta = claim.metadata
    return replace(
        claim,
        metadata=replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"}),
        spec=replace(claim.spec, volume_name=volume),
        status=replace(claim.status, phase=BOUND),
    )

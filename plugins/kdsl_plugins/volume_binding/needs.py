"""The requirements of one pod's claims on a node, computed once for all nodes.

Facts of k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.volumes import STORAGE, VolumeInfo
from kdsl.cluster.storage.claims import SELECTED_NODE, PodClaim, class_of
from kdsl.cluster.storage.volume_plan import Binding, VolumePlan

from kdsl_plugins.volume_binding.class_volumes import CatalogVolumes
from kdsl_plugins.volume_binding.matching import Candidates, requested_by
from kdsl_plugins.volume_binding.provisioning import Provisioner, Provisioners

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.snapshot.catalog import Catalog

WRONG_NODE: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
NO_STORAGE: Final = "node(s) did not have enough free storage"
LOST_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A claim that waits until its pod has a node. `selected` is the node that its annotation names, if
    any.
    """

    claim: PersistentVolumeClaim
    requested: Quantity | None
    selected: str | None
    candidates: Candidates
    provisioner: Provisioner

    @staticmethod
    def of(
        claim: PersistentVolumeClaim, catalog: Catalog, volumes: CatalogVolumes, provisioners: Provisioners
    ) -> Wanted:
        """Read a claim whose storage class exists."""
        storage_class = class_of(claim)
        return Wanted(
            claim=claim,
            requested=requested_by(claim) if STORAGE in claim.spec.resources.requests else None,
            selected=claim.metadata.annotations.get(SELECTED_NODE),
            candidates=Candidates.of(claim, volumes.of_class(storage_class, catalog)),
            provisioner=provisioners.of(storage_class, catalog),
        )

    @property
    def label_keys(self) -> frozenset[str]:
        """The labels of a node that decide whether the claim gets a volume there."""
        return self.candidates.label_keys | self.provisioner.label_keys


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a node: a volume plan, or the reasons why the node is rejected."""

    plan: VolumePlan
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """The volumes of bound claims, None for those that are gone, and the claims that wait.

    The smallest waiting claims come first, so that each gets the smallest volume that fits.
    """

    bound: tuple[VolumeInfo | None, ...]
    selected: tuple[Wanted, ...]
    waiting: tuple[Wanted, ...]

    @staticmethod
    def of(
        bound: Iterable[PodClaim],
        unbound: Iterable[PersistentVolumeClaim],
        catalog: Catalog,
        volumes: CatalogVolumes,
        provisioners: Provisioners,
    ) -> VolumeNeeds:
        """Read the claims of a pod."""
        wanted = [Wanted.of(claim, catalog, volumes, provisioners) for claim in unbound]
        return VolumeNeeds(
            bound=tuple(claim.volume for claim in bound),
            selected=tuple(one for one in wanted if one.selected is not None),
            waiting=tuple(
                sorted(
                    (one for one in wanted if one.selected is None), key=lambda one: requested_by(one.claim)
                )
            ),
        )

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that decide; None if its name decides, too."""
        if self.selected:
            return None
        volumes = [volume.node_label_keys for volume in self.bound if volume is not None]
        return frozenset[str]().union(*volumes, *(one.label_keys for one in self.waiting))

    def on(self, node: NodeInfo) -> Found:
        """Find volumes on `node` for all claims."""
        reasons: list[str] = []
        misfit = self._misfit(node)
        if misfit == WRONG_NODE:
            reasons.append(misfit)
        plan = VolumePlan(node.name)
        if any(one.selected != node.name for one in self.selected):
            reasons.append(NO_VOLUME)
        else:
            bindings, left = self._matched(node)
            missing = _provision_misfit(left, node)
            if missing:
                reasons.append(missing)
            plan = VolumePlan(node.name, bindings, tuple(one.claim for one in left))
        if misfit == LOST_VOLUME:
            reasons.append(misfit)
        return Found(plan, tuple(reasons))

    def _misfit(self, node: NodeInfo) -> str:
        """Return the problem of the first bound claim that does not fit the node; empty where all fit."""
        for volume in self.bound:
            if volume is None:
                return LOST_VOLUME
            if not volume.can_be_used_on(node.labels):
                return WRONG_NODE
        return ""

    def _matched(self, node: NodeInfo) -> tuple[tuple[Binding, ...], tuple[Wanted, ...]]:
        """Match waiting claims with existing volumes; return the bindings and the claims to provision."""
        taken: dict[str, Binding] = {}
        left = list(self.selected)
        for one in self.waiting:
            volume = one.candidates.find(node.labels, taken)
            if volume is None:
                left.append(one)
            else:
                taken[volume.name] = Binding(one.claim, volume.thing)
        return tuple(taken.values()), tuple(left)


def _provision_misfit(claims: Iterable[Wanted], node: NodeInfo) -> str:
    """Return why some claim cannot be provisioned on the node; empty where all can."""
    for one in claims:
        if not one.provisioner.serves(node.labels):
            return NO_VOLUME
        if not one.provisioner.has_room(one.requested, node.labels):
            return NO_STORAGE
    return ""

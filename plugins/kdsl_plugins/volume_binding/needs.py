"""The requirements of one pod's claims on a node, computed once for all nodes.

Facts of k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kdsl.base.quantity import Quantity
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.volumes import STORAGE
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
        return frozenset(self.candidates.volumes.free.label_keys) | self.other_label_keys

    @property
    def other_label_keys(self) -> frozenset[str]:
        """Those of them that decide about other than free volumes."""
        reserved = [volume.node_label_keys for volume in self.candidates.reserved]
        return self.provisioner.label_keys.union(*reserved)


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a node: a volume plan, or the reasons why the node is rejected, each with the claim
    that decided.
    """

    plan: VolumePlan
    rejected: Mapping[str, PodClaim | Wanted]

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self.rejected)


@dataclass(frozen=True, slots=True)
class VolumeNeeds:
    """The bound claims, and the claims that wait.

    The smallest waiting claims come first, so that each gets the smallest volume that fits.
    """

    bound: tuple[PodClaim, ...]
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
            bound=tuple(bound),
            selected=tuple(one for one in wanted if one.selected is not None),
            waiting=tuple(
                sorted(
                    (one for one in wanted if one.selected is None), key=lambda one: requested_by(one.claim)
                )
            ),
        )

    @property
    def labels(self) -> dict[str, Collection[str] | None] | None:
        """The labels of a node that decide, each with the values that do, None if any may. None if the name
        of the node decides, too.
        """
        if self.selected:
            return None
        volumes = [claim.volume.node_label_keys for claim in self.bound if claim.volume is not None]
        keys = frozenset[str]().union(*volumes, *(one.label_keys for one in self.waiting))
        found: dict[str, Collection[str] | None] = dict.fromkeys(sorted(keys))
        free = [one.candidates.volumes.free for one in self.waiting]
        for key in keys.difference(*volumes, *(one.other_label_keys for one in self.waiting)):
            named = [each.named(key) for each in free]
            if None not in named:
                found[key] = named[0] if len(named) == 1 else set[str]().union(*filter(None, named))
        return found

    def on(self, node: NodeInfo) -> Found:
        """Find volumes on `node` for all claims."""
        rejected: dict[str, PodClaim | Wanted] = {}
        misfit = self._misfit(node)
        if misfit is not None and misfit.volume is not None:
            rejected[WRONG_NODE] = misfit
        plan = VolumePlan(node.name)
        elsewhere = next((one for one in self.selected if one.selected != node.name), None)
        if elsewhere is not None:
            rejected[NO_VOLUME] = elsewhere
        else:
            bindings, left = self._matched(node)
            rejected |= _provision_misfit(left, node)
            plan = VolumePlan(node.name, bindings, tuple(one.claim for one in left))
        if misfit is not None and misfit.volume is None:
            rejected[LOST_VOLUME] = misfit
        return Found(plan, rejected)

    def _misfit(self, node: NodeInfo) -> PodClaim | None:
        """Return the first bound claim whose volume is gone or not accessible from the node."""
        for claim in self.bound:
            if claim.volume is None or not claim.volume.can_be_used_on(node.labels):
                return claim
        return None

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


def _provision_misfit(claims: Iterable[Wanted], node: NodeInfo) -> dict[str, Wanted]:
    """Return the first claim that cannot be provisioned on the node, by the reason; empty where all can."""
    for one in claims:
        if not one.provisioner.serves(node.labels):
            return {NO_VOLUME: one}
        if not one.provisioner.has_room(one.requested, node.labels):
            return {NO_STORAGE: one}
    return {}

"""The volumes for a pod's unbound claims on a node, and the changes of the catalog that follow.

The volume binding plugin creates plans; a `VolumeBinder` assumes and executes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kdsl.cluster.api.storage_objects import ClaimReference, PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.storage.claims import SELECTED_NODE

if TYPE_CHECKING:
    from kdsl.cluster.api.kinds import StorageObject

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


@dataclass(frozen=True, slots=True)
class Binding:
    """An existing volume, for a claim that it fits."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """Volumes for claims on `node`: `bindings` to existing ones, `provisions` for those to be created."""

    node: str
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the plan has no bindings and no provisions."""
        return not self.bindings and not self.provisions

    def changes(self) -> tuple[StorageObject, ...]:
        """Return the objects that the plan changes, in the form the scheduler writes."""
        return (
            *(_set_aside(binding) for binding in self.bindings),
            *(_selected(claim, self.node) for claim in self.provisions),
        )


def reference_to(claim: PersistentVolumeClaim) -> ClaimReference:
    """Return the claimRef of a volume for its claim."""
    meta = claim.metadata
    return ClaimReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _set_aside(binding: Binding) -> PersistentVolume:
    volume, reference = binding.volume, reference_to(binding.claim)
    meta = volume.metadata
    if volume.spec.claim_ref is None:
        annotations = {BOUND_BY_CONTROLLER: "yes", **meta.annotations}
        meta = replace(meta, annotations=annotations)
    return replace(volume, metadata=meta, spec=replace(volume.spec, claim_ref=reference))


def _selected(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    meta = claim.metadata
    return replace(claim, metadata=replace(meta, annotations={**meta.annotations, SELECTED_NODE: node}))

"""What a pod's unbound claims get on a node, and what that changes in the catalog.

The volume binding plugin makes plans; a `VolumeBinder` assumes them and carries them out.
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
    """A volume that is there, for a claim that it fits."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """Volumes for claims on `node`: `bindings` to those there are, `provisions` for those to be made."""

    node: str
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to bind."""
        return not self.bindings and not self.provisions

    def changes(self) -> tuple[StorageObject, ...]:
        """Return the objects that the plan changes, as they are once the scheduler has said so."""
        return (
            *(_set_aside(binding) for binding in self.bindings),
            *(_selected(claim, self.node) for claim in self.provisions),
        )


def reference_to(claim: PersistentVolumeClaim) -> ClaimReference:
    """Return what a volume says of the claim it belongs to."""
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

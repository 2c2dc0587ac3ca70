"""The claims of a pod with their objects in the catalog, in the form that rules and plugins read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.storage_objects import PersistentVolumeClaim, StorageClass
from kdsl.cluster.objects.volumes import BETA_CLASS, VolumeInfo

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
ON_FIRST_USE: Final = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """The claim of a pod's volume. It has the fields of the `Claim` view.

    An object that the catalog does not have is None: `thing` is the claim itself, `volume` the volume that it
    names, `storage_class` its class.
    """

    name: str
    namespace: str
    is_ephemeral: bool = False
    thing: PersistentVolumeClaim | None = None
    volume: VolumeInfo | None = None
    storage_class: StorageClass | None = None

    @property
    def exists(self) -> bool:
        return self.thing is not None

    @property
    def access_modes(self) -> Sequence[str]:
        return () if self.thing is None else tuple(self.thing.spec.access_modes)

    @property
    def volume_name(self) -> str:
        return "" if self.thing is None else self.thing.spec.volume_name

    @property
    def storage_class_name(self) -> str:
        return "" if self.thing is None else class_of(self.thing)

    @property
    def binding_mode(self) -> str:
        return "" if self.storage_class is None else self.storage_class.volume_binding_mode


def class_of(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim; empty for a claim without a class."""
    return claim.metadata.annotations.get(BETA_CLASS, claim.spec.storage_class_name or "")


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether claim and volume are fully bound; the name of a volume alone is not enough."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def users_of(claim: PodClaim, pods: Iterable[PodInfo]) -> int:
    """Count the pods among `pods` that name the claim; a claim created for a pod is not named."""
    return sum(
        any(volume.claim_name == claim.name and not volume.is_ephemeral for volume in pod.volumes)
        for pod in pods
        if pod.volumes and pod.namespace == claim.namespace
    )


def claim_names_of(pod: PodInfo) -> tuple[str, ...]:
    """Return the `namespace/name` of the claims of the pod's volumes, including those created for it."""
    return tuple(f"{pod.namespace}/{volume.claim_name}" for volume in pod.volumes if volume.claim_name)


def uses_claim(pod: PodInfo, claim: object) -> bool:
    """Return whether `claim` is a claim of one of the pod's volumes."""
    if not isinstance(claim, PersistentVolumeClaim):
        return True  # nobody knows which one it is
    meta = claim.metadata
    return meta.namespace == pod.namespace and any(volume.claim_name == meta.name for volume in pod.volumes)


def claims_of(pod: PodInfo, catalog: Catalog) -> tuple[PodClaim, ...]:
    """Return the claims of the pod's volumes in their order, including those created for it."""
    if not pod.volumes:
        return ()
    return tuple(
        _claim(volume.claim_name, pod.namespace, volume.is_ephemeral, catalog)
        for volume in pod.volumes
        if volume.claim_name
    )


def _claim(name: str, namespace: str, is_ephemeral: bool, catalog: Catalog) -> PodClaim:
    claim = catalog.claims.get(f"{namespace}/{name}")
    if claim is None:
        return PodClaim(name, namespace, is_ephemeral)
    return PodClaim(
        name,
        namespace,
        is_ephemeral,
        claim,
        catalog.storage.volumes.get(claim.spec.volume_name),
        catalog.storage_classes.get(class_of(claim)),
    )

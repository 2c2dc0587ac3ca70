"""The claim of a pod whose extended resources are devices: the scheduler creates it when it binds the pod.

Until then it has a name that no claim of the API can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from msgspec.structs import replace

from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.api.names import MAX_SUBDOMAIN
from kdsl.cluster.api.objects import ObjectMeta, OwnerReference
from kdsl.cluster.objects.pod import PodInfo

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
NEW_NAME: Final = "<extended-resources>"
_YES: Final = "true"
_NAMED: Final = "-extended-resources-"


class RequestMapping(NamedTuple):
    """A request of the claim that gives devices to a container, for a resource that it names."""

    container: str
    resource: str
    request: str


def new_claim(pod: PodInfo) -> ResourceClaim:
    """Return the claim of a pod before it is created, without requests."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ObjectMeta(
        name=NEW_NAME,
        namespace=pod.namespace,
        annotations={ANNOTATION: _YES},
        owner_references=[owner],
    )
    return ResourceClaim(meta)


def is_new(claim: ResourceClaim) -> bool:
    """Return whether a claim is still to be created."""
    return claim.metadata.name == NEW_NAME


def owner_of(claim: ResourceClaim) -> str:
    """Return the uid of the pod for whose resources the claim was made; empty for other claims."""
    meta = claim.metadata
    if meta.annotations.get(ANNOTATION) != _YES:
        return ""
    return next((each.uid for each in meta.owner_references if each.controller), "")


def claims_for(pod: PodInfo, claims: Iterable[ResourceClaim]) -> Iterator[ResourceClaim]:
    """Yield the claims that were made for a pod's resources."""
    return (claim for claim in claims if claim.metadata.annotations and owner_of(claim) == pod.uid)


def name_prefix(claim: ResourceClaim) -> str:
    """Return the beginning of the name that the created claim gets.

    The server cuts it, but refuses one that is longer than a name may be.
    """
    pod = claim.metadata.owner_references[0].name[: MAX_SUBDOMAIN - len(_NAMED)].rstrip("-.")
    return pod + _NAMED


def created(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim as it is created in memory: equal claims get equal names."""
    owner = claim.metadata.owner_references[0]
    uid = uuid5(NAMESPACE_OID, f"{claim.metadata.namespace}/{owner.name}/{owner.uid}")
    name = name_prefix(claim) + uid.hex[:5]
    return replace(claim, metadata=replace(claim.metadata, name=name, uid=str(uid)))

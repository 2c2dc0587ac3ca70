"""The device claims of a pod that gets a node: new allocations, and the pod as one more user of each claim.

The plugin DynamicResources creates plans; a `ClaimWriter` assumes and executes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from kdsl.cluster.api.device_objects import Allocation, ConsumerReference, ResourceClaim, ResourceClaimStatus
from kdsl.cluster.resource_claims.extended_claims import RequestMapping, is_new, owner_of
from kdsl.cluster.snapshot.catalog import key_of

PODS = "pods"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A claim as the decision saw it, and its new allocation: None if it is allocated already.

    The claim of a pod's extended resources is to be created, and has `mappings` for the status of the pod.
    """

    claim: ResourceClaim
    allocation: Allocation | None = None
    mappings: tuple[RequestMapping, ...] = ()

    @property
    def key(self) -> str:
        """The `namespace/name` of the claim; one that is to be created is unique by its pod."""
        key = key_of(self.claim)
        return f"{key}/{owner_of(self.claim)}" if is_new(self.claim) else key


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """The claims to write for a pod. `held` are the claims that list the pod already.

    `written` are the keys of the claims that were written, `created` the claims that were created, by the key
    of their reservation; a writer adds to both.
    """

    user: ConsumerReference
    reservations: tuple[Reservation, ...] = ()
    held: tuple[ResourceClaim, ...] = ()
    written: set[str] = field(default_factory=set)
    created: dict[str, ResourceClaim] = field(default_factory=dict)

    def allocated(self) -> Mapping[str, ResourceClaim]:
        """Return the claims with new allocations, by key."""
        return {each.key: self.changed(each) for each in self.reservations if each.allocation is not None}

    def changed(self, reservation: Reservation) -> ResourceClaim:
        """Return the claim with its allocation and its new user."""
        claim, status = reservation.claim, reservation.claim.status
        allocation = status.allocation if reservation.allocation is None else reservation.allocation
        users = [*status.reserved_for, self.user]
        return replace(claim, status=replace(status, allocation=allocation, reserved_for=users))

    def to_release(self) -> tuple[ResourceClaim, ...]:
        """Return the claims that list the pod on the server."""
        return (*self.held, *(each.claim for each in self.reservations if each.key in self.written))


def user_of(name: str, uid: str) -> ConsumerReference:
    """Return the reference of a claim to a pod."""
    return ConsumerReference(resource=PODS, name=name, uid=uid)


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Return whether a claim lists the pod with this uid as a user."""
    return any(user.uid == uid for user in claim.status.reserved_for)


def released(claim: ResourceClaim, uid: str) -> ResourceClaim:
    """Return a claim without the pod with this uid among its users."""
    users = [user for user in claim.status.reserved_for if user.uid != uid]
    return replace(claim, status=replace(claim.status, reserved_for=users))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim without devices and users."""
    return replace(claim, status=ResourceClaimStatus())

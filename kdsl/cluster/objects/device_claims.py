"""The claims of devices that a pod names."""

from __future__ import annotations

from msgspec import Struct

from kdsl.cluster.api.objects import Pod


class DeviceClaim(Struct, frozen=True):
    """An entry of a pod's `resourceClaims`, and the name of its ResourceClaim.

    A controller creates the claims of templates (`is_generated`). `claim` is None until it has reported the
    name of the new claim, and empty if the pod needs none.
    """

    name: str
    claim: str | None = None
    is_generated: bool = False


def device_claims_of(pod: Pod) -> tuple[DeviceClaim, ...]:
    """Return the claims of devices of an API object, in their order."""
    claims = pod.spec.resource_claims
    if not claims:
        return ()
    created = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return tuple(
        DeviceClaim(one.name, created.get(one.name), True)
        if one.resource_claim_template_name
        else DeviceClaim(one.name, one.resource_claim_name or None)
        for one in claims
    )

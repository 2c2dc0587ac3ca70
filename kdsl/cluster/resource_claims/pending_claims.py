"""Claims of devices that are allocated in memory, and not yet known to be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan

if TYPE_CHECKING:
    from kdsl.cluster.snapshot.cache import ClusterCache


class PendingClaims:
    """The part of a `ClaimWriter` that keeps devices for pods."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster
        self._pending: dict[str, ResourceClaim] = {}

    def find(self, key: str) -> ResourceClaim | None:
        """Return the claim `namespace/name`."""
        return self.cluster.resource_claims.get(key)

    def pending(self) -> Mapping[str, ResourceClaim]:
        """Return the claims whose new allocation is not known to be written, by key."""
        return self._pending

    def assume(self, plan: ClaimPlan) -> None:
        """Keep the devices of a plan, so that later pods do not get them."""
        self._pending.update(plan.allocated())

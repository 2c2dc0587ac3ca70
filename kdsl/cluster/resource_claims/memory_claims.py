"""Device claims written in memory, at once: simulations, rule tests and explanations use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from kdsl.base.events import Action, Resource
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan, deallocated, is_reserved_for, released
from kdsl.cluster.resource_claims.extended_claims import claims_for, created, is_new
from kdsl.cluster.resource_claims.pending_claims import PendingClaims
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.cluster.snapshot.events import ClusterEvent

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.cache import ClusterCache


class MemoryClaims(PendingClaims):
    """A `ClaimWriter` that changes `cluster` only; `use` replaces it by another one."""

    def use(self, cluster: ClusterCache) -> None:
        """Change another cluster from now on. Assumed devices are those of the one before."""
        self.cluster = cluster
        self.undo()

    def follow(self) -> None:
        """Release the claims of pods that leave the cluster, as the claim controller does it."""
        self.cluster.observe(self._notice, lambda pod: bool(self.cluster.resource_claims))

    def _notice(self, event: ClusterEvent) -> None:
        pod = event.pod
        if pod is None or event.resource is not Resource.ASSIGNED_POD or not event.actions & Action.DELETE:
            return
        self._remove(claims_for(pod, self.cluster.resource_claims.values()) if pod.device_containers else ())
        for each in pod.resource_claims:
            claim = self.find(f"{pod.namespace}/{each.claim}")
            if claim is not None and is_reserved_for(claim, pod.uid):
                left = released(claim, pod.uid)
                self.cluster.put(left if left.status.reserved_for else deallocated(left))

    def forget(self, plan: ClaimPlan) -> None:
        """Release the devices of the plan that are not written, and remove the pod from the claims."""
        for key in plan.allocated():
            self._pending.pop(key, None)
        self._remove(plan.created.values())
        for claim in plan.to_release():
            present = self.find(key_of(claim))
            if present is not None:
                self.cluster.put(released(present, plan.user.uid))

    def undo(self) -> None:
        """Release all devices that are assumed and not written."""
        self._pending.clear()

    def write(self, pod: PodInfo, plan: ClaimPlan) -> None:
        """Write allocations and users of the claims."""
        for each in plan.reservations:
            if is_new(each.claim):
                present = plan.created[each.key] = created(each.claim)
            else:
                # Other pods may have become users since the decision.
                present = self.find(each.key) or each.claim
                plan.written.add(each.key)
            self.cluster.put(plan.changed(replace(each, claim=present)))
            self._pending.pop(each.key, None)

    def deallocate(self, claim: ResourceClaim) -> None:
        """Take the devices away from a claim."""
        self.cluster.put(deallocated(claim))

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim with its devices."""
        self._remove((claim,))

    def _remove(self, claims: Iterable[ResourceClaim]) -> None:
        for key in [key_of(claim) for claim in claims]:
            self.cluster.remove(ResourceClaim.KIND, key)

"""DynamicResources: a pod runs on a node that can use the devices of its claims, and gets new ones there.

The texts and codes are kube-scheduler's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan, is_reserved_for
from kdsl.cluster.resource_claims.extended_claims import claims_for, new_claim, owner_of
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.hooks import Code, CycleState, PluginContext, Status, StatusColumn, hookimpl

from kdsl_plugins.dynamic_resources.allocator import Allocator
from kdsl_plugins.dynamic_resources.attempt import Attempt
from kdsl_plugins.dynamic_resources.catalog_devices import CatalogDevices, is_allocated
from kdsl_plugins.dynamic_resources.facts import facts_of
from kdsl_plugins.dynamic_resources.pod_claims import ClaimProblemError, claims_of, problem_of

if TYPE_CHECKING:
    import numpy as np
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.catalog import Catalog
    from kdsl.cluster.snapshot.events import ClusterEvent
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from numpy.typing import NDArray

MOST_USERS: Final = 256
"""The most users of a claim."""
_STATE: Final = "DynamicResources"
_PLAN: Final = "DynamicResources/plan"
_FACTS: Final = "DynamicResources/facts"
_SKIP: Final = Status(Code.SKIP)
_NO_CLAIMS: Final = object()
"""The state of an attempt whose pod has no claims to care about."""
_EVENTS: Final = (
    EventPattern(Resource.NODE, Action.ADD | Action.NODE_LABEL | Action.NODE_ALLOCATABLE),
    # The claims that a controller creates for the pod are named in its status.
    EventPattern(Resource.TARGET_POD, Action.POD_OTHER),
    # A class that goes leaves its resource to the nodes.
    EventPattern(Resource.DEVICE_CLASS),
    EventPattern(Resource.RESOURCE_CLAIM),
    # Without an outdated slice, or devices that are taken, a pool may be complete, and all its devices free.
    EventPattern(Resource.RESOURCE_SLICE),
)


class DynamicResources:
    """Allocates devices, and writes claims through the `ClaimWriter` port. It takes no arguments."""

    # Hooks that run for every pod declare all arguments: with fewer, a second call drops the others.

    IS_LOCAL: ClassVar = True
    ONLY_FOR: ClassVar = ("resource_claims", "device_resources")

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        self._claims, self._conditions, self._clock = context.claims, context.conditions, context.clock
        self._devices = CatalogDevices()

    @hookimpl
    def events(self) -> Collection[EventPattern]:
        """Return the events that may make devices available."""
        return _EVENTS

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether an event helps: claims exist, and a changed one frees devices or is the pod's."""
        if problem_of(pod, self._claims.find):
            return False
        if event.resource is not Resource.RESOURCE_CLAIM:
            return True
        before, after = event.before, event.after
        assert before is None or isinstance(before, ResourceClaim)
        assert after is None or isinstance(after, ResourceClaim)
        if is_allocated(before) and not is_allocated(after):
            return True
        if after is None:
            return before is not None and owner_of(before) == pod.uid
        if key_of(after) not in claims_of(pod):
            return False
        return before is None or before.status != after.status

    @hookimpl
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Keep a pod out of the queue until its claims exist."""
        if not pod.resource_claims:
            return None
        problem = problem_of(pod, self._claims.find)
        return Status(Code.UNRESOLVABLE, (problem,)) if problem else None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        """Read the claims of a pod; reject it if they fail on every node, skip a pod without claims."""
        state.values[_STATE] = _NO_CLAIMS
        if not pod.resource_claims and not pod.device_resources:
            return _SKIP
        catalog = nodes.snapshot.catalog
        try:
            claims = tuple(self._usable_claims(pod, catalog))
        except ClaimProblemError as problem:
            if problem.fact:
                state.values[_FACTS] = {str(problem): [problem.fact]}
            return Status(Code.UNRESOLVABLE, (str(problem),))
        has_extended = bool(pod.device_resources)
        if not claims and not has_extended:
            return _SKIP
        known = claims_for(pod, catalog.resource_claims.values()) if has_extended else iter(())
        state.values[_STATE] = Attempt(
            pod=pod,
            snapshot=nodes.snapshot,
            claims=claims,
            extended=new_claim(pod) if has_extended else None,
            left_over=next(known, None),
            classes=catalog.device_resources,
            allocate=lambda new: self._allocator(new, catalog),
            now=self._clock.now(),
        )
        # Pods that leave a node free no devices: their claims stay allocated at first.
        state.local_filters.add(_STATE)
        return None

    def _usable_claims(self, pod: PodInfo, catalog: Catalog) -> Iterator[ResourceClaim]:
        """Yield the claims of a pod; raise ClaimProblemError where one cannot be used now."""
        problem = problem_of(pod, catalog.resource_claims.get)
        if problem:
            raise ClaimProblemError(problem)
        pending = self._claims.pending()
        for key in claims_of(pod):
            claim = catalog.resource_claims[key]
            if claim.status.allocation is not None:
                if len(claim.status.reserved_for) >= MOST_USERS and not is_reserved_for(claim, pod.uid):
                    fact = f"claim {claim.metadata.name} has {MOST_USERS} users, the most of a claim"
                    raise ClaimProblemError("resourceclaim in use", fact)
            elif key in pending:
                raise ClaimProblemError(f"resource claim {key} is in the process of being allocated")
            else:
                _check_classes(claim, catalog)
            yield claim

    def _allocator(self, claims: Sequence[ResourceClaim], catalog: Catalog) -> Allocator:
        slices, usage = self._devices.of(catalog, self._claims.pending())
        return Allocator.of(claims, catalog.device_classes, slices, usage, self._conditions)

    @hookimpl
    def filter(self, state: CycleState, nodes: NodeSet) -> StatusColumn:
        """Reject the nodes that cannot use the devices of the claims, or have none for new ones."""
        attempt = state.values[_STATE]
        assert isinstance(attempt, Attempt)
        return attempt.statuses(nodes)

    @hookimpl
    def decided_by(self, state: CycleState, node: NodeInfo) -> dict[str, list[str]]:
        """Return the claims and requests behind a rejection, and what the node lacks for them."""
        early = state.values.get(_FACTS)
        if isinstance(early, dict):
            return early
        attempt = state.values.get(_STATE)
        return facts_of(attempt, node) if isinstance(attempt, Attempt) else {}

    @hookimpl
    def post_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Take the devices away from one claim that keeps the pod from all other nodes and has no other user,
        or delete the claim that an earlier attempt created for the pod.

        Answers UNSCHEDULABLE in any case, so that the next plugin makes room. Where another plugin ended
        PreFilter before this one, the reference fails to read its state, which ends the phase with this text.
        """
        if _STATE not in state.values and _STATE not in state.skipped_filters:
            return Status(Code.ERROR, ("not found",))
        attempt = state.values.get(_STATE)
        if not isinstance(attempt, Attempt):
            return Status(Code.UNSCHEDULABLE, ("no new claims to deallocate",))
        for claim in attempt.claims:
            if key_of(claim) in attempt.unavailable and all(
                user.uid == pod.uid for user in claim.status.reserved_for
            ):
                problem = self._claims.deallocate(claim)
                return problem or Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",))
        if attempt.left_over is not None:
            problem = self._claims.delete(attempt.left_over)
            return problem or Status(Code.UNSCHEDULABLE, ("deletion of ResourceClaim completed",))
        return Status(Code.UNSCHEDULABLE, ("still not schedulable",))

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | int:
        """Prefer nodes where requests get their first alternatives; other pods score every node alike."""
        if not pod.resource_claims:
            return 0
        attempt = state.values.get(_STATE)
        if not isinstance(attempt, Attempt) or not attempt.has_alternatives:
            return 0
        raw = attempt.scores(nodes)
        most = int(raw.max(initial=0))
        return raw * 100 // most if most else 0

    @hookimpl
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Keep the devices for the pod, so that later pods do not get them."""
        attempt = state.values.get(_STATE)
        if not isinstance(attempt, Attempt):
            return
        plan = attempt.plan(node)
        self._claims.assume(plan)
        state.values[_PLAN] = plan

    @hookimpl
    def unreserve(self, state: CycleState) -> None:
        """Release the devices that were kept, and the pod as a user of its claims."""
        plan = state.values.get(_PLAN)
        if isinstance(plan, ClaimPlan):
            self._claims.forget(plan)
            del state.values[_PLAN]

    @hookimpl
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Answer SKIP for a pod without claims."""
        return None if _PLAN in state.values else _SKIP

    @hookimpl
    def pre_bind(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Write the claims before the pod is bound to its node."""
        plan = state.values.get(_PLAN)
        return self._claims.write(pod, plan) if isinstance(plan, ClaimPlan) else None


def _check_classes(claim: ResourceClaim, catalog: Catalog) -> None:
    """Check that the device classes of a claim's requests exist; raise ClaimProblemError."""
    for request in claim.spec.devices.requests:
        if request.exactly is None and not request.first_available:
            text = f"resource claim {key_of(claim)}, request {request.name}: unknown request type"
            raise ClaimProblemError(text)
        exactly = () if request.exactly is None else ((request.name, request.exactly),)
        others = ((f"{request.name}/{each.name}", each) for each in request.first_available)
        for name, each in (*exactly, *others):
            if each.device_class_name not in catalog.device_classes:
                text = f"request {name}: device class {each.device_class_name} does not exist"
                raise ClaimProblemError(text)

"""VolumeBinding: a pod runs on a node where its volumes are, or can be found or made; they are bound with it.

The texts and codes are kube-scheduler's.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.storage.claims import (
    ON_FIRST_USE,
    PodClaim,
    claim_names_of,
    claims_of,
    is_bound,
    uses_claim,
)
from kdsl.cluster.storage.volume_plan import VolumePlan
from kdsl.hooks import Code, CycleState, PluginContext, Status, StatusColumn, hookimpl

from kdsl_plugins.volume_binding.class_volumes import CatalogVolumes
from kdsl_plugins.volume_binding.facts import facts_of, unbound_facts
from kdsl_plugins.volume_binding.needs import VolumeNeeds
from kdsl_plugins.volume_binding.provisioning import Provisioners

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.events import ClusterEvent
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from kdsl.cluster.snapshot.snapshot import Snapshot

UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
_STATE: Final = "VolumeBinding"
_PLAN: Final = "VolumeBinding/plan"
_EARLY: Final = "VolumeBinding/early"
_SKIP: Final = Status(Code.SKIP)
_NEWS: Final = Action.ADD | Action.UPDATE
_EVENTS: Final = (
    EventPattern(Resource.NODE, Action.ADD | Action.NODE_LABEL),
    EventPattern(Resource.PERSISTENT_VOLUME, _NEWS),
    EventPattern(Resource.PERSISTENT_VOLUME_CLAIM, _NEWS),
    EventPattern(Resource.STORAGE_CLASS, _NEWS),
    EventPattern(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE),
    EventPattern(Resource.CSI_STORAGE_CAPACITY, _NEWS),
    # A pod whose binding failed releases its volumes.
    EventPattern(Resource.ASSIGNED_POD, Action.DELETE),
)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The state of one attempt from PreFilter on. `labels` are those of `VolumeNeeds`."""

    needs: VolumeNeeds
    labels: Mapping[str, Collection[str] | None] | None
    snapshot: Snapshot


class VolumeBinding:
    """Finds volumes for claims, and binds them through the `VolumeBinder` port. It takes no arguments."""

    IS_LOCAL: ClassVar = True
    ONLY_FOR: ClassVar = ("volumes",)

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        self._volumes = context.volumes
        self._known, self._provisioners = CatalogVolumes(), Provisioners()

    @hookimpl
    def events(self) -> Collection[EventPattern]:
        """Return the events that may make volumes available."""
        return _EVENTS

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether an event helps: a claim is one of the pod's, a pod that leaves had claims."""
        if event.resource is Resource.PERSISTENT_VOLUME_CLAIM:
            return any(uses_claim(pod, each) for each in (event.before, event.after) if each is not None)
        if event.resource is Resource.ASSIGNED_POD:
            return event.pod is None or bool(claim_names_of(event.pod))
        return True

    @hookimpl
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return the claims of the pod."""
        return claim_names_of(pod)

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        """Reject a pod whose claims fail on every node; skip a pod without claims."""
        catalog = nodes.snapshot.catalog
        claims = claims_of(pod, catalog)
        if not claims:
            return _SKIP
        problem = next((text for claim in claims if (text := _problem(claim, pod))), "")
        if problem:
            return Status(Code.UNRESOLVABLE, (problem,))
        unbound = [claim for claim in claims if not is_bound(_thing(claim))]
        if not all(map(_waits_for_node, unbound)):
            state.values[_EARLY] = [claim for claim in unbound if not _waits_for_node(claim)]
            return Status(Code.UNRESOLVABLE, (UNBOUND,))
        bound = [claim for claim in claims if is_bound(_thing(claim))]
        needs = VolumeNeeds.of(bound, _distinct(unbound), catalog, self._known, self._provisioners)
        state.local_filters.add(_STATE)
        state.values[_STATE] = _Attempt(needs, needs.labels, nodes.snapshot)
        return None

    @hookimpl
    def filter(self, state: CycleState, nodes: NodeSet) -> StatusColumn:
        """Reject the nodes that cannot reach the pod's volumes or cannot get new ones."""
        attempt = state.values[_STATE]
        assert isinstance(attempt, _Attempt)
        asked, places = (nodes, None) if attempt.labels is None else nodes.by_labels(attempt.labels)
        found = (attempt.needs.on(node).reasons for node in asked.nodes())
        statuses = StatusColumn.of(
            Status(Code.UNRESOLVABLE, reasons) if reasons else None for reasons in found
        )
        return statuses if places is None else statuses.take(places)

    @hookimpl
    def decided_by(self, state: CycleState, node: NodeInfo) -> dict[str, list[str]]:
        """Return the claims behind a rejection, with their volumes and classes."""
        early = state.values.get(_EARLY)
        if isinstance(early, list):
            return {UNBOUND: list(map(unbound_facts, early))}
        attempt = state.values.get(_STATE)
        return facts_of(attempt.needs.on(node).rejected, node) if isinstance(attempt, _Attempt) else {}

    @hookimpl
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Reserve the volumes, so that later pods do not get them."""
        if _STATE not in state.values:
            return
        attempt = state.values[_STATE]
        assert isinstance(attempt, _Attempt)
        info = attempt.snapshot.node(node)
        plan = None if info is None else attempt.needs.on(info).plan
        if plan is not None and not plan.is_empty:
            self._volumes.assume(plan)
            state.values[_PLAN] = plan

    @hookimpl
    def unreserve(self, state: CycleState) -> None:
        """Release the reserved volumes."""
        plan = state.values.get(_PLAN)
        if isinstance(plan, VolumePlan):
            self._volumes.forget(plan)
            del state.values[_PLAN]

    @hookimpl
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Answer SKIP where all volumes are bound already."""
        return None if _PLAN in state.values else _SKIP

    @hookimpl
    def pre_bind(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Bind the volumes before the pod is bound to its node."""
        plan = state.values.get(_PLAN)
        return self._volumes.bind(pod, plan) if isinstance(plan, VolumePlan) else None


def _problem(claim: PodClaim, pod: PodInfo) -> str:
    """Return why the pod must wait for a change of the claim; empty where it need not."""
    thing = claim.thing
    if thing is None:
        if claim.is_ephemeral:
            return (
                f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{claim.name}"'
            )
        return f'persistentvolumeclaim "{claim.name}" not found'
    if thing.status.phase == "Lost":
        volume = thing.spec.volume_name
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{volume}"'
    if thing.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if claim.is_ephemeral and not any(
        owner.controller and owner.uid == pod.uid for owner in thing.metadata.owner_references
    ):
        key = f"{thing.metadata.namespace}/{claim.name}"
        return f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _waits_for_node(claim: PodClaim) -> bool:
    """Return whether an unbound claim is bound once its pod has a node.

    A claim that names its volume already waits for the volume controller.
    """
    return claim.binding_mode == ON_FIRST_USE and not claim.volume_name


def _thing(claim: PodClaim) -> PersistentVolumeClaim:
    # INVARIANT: a pod with a missing claim is rejected before.
    assert claim.thing is not None
    return claim.thing


def _distinct(claims: list[PodClaim]) -> Iterator[PersistentVolumeClaim]:
    """Yield each claim once: several volumes of a pod may use one claim."""
    return iter({claim.name: _thing(claim) for claim in claims}.values())

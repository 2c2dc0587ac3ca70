"""The devices of a profile as a plugin: cards are found, scored, reserved and recorded in the cycle.

The usage of a card follows from the annotations of the pods in the snapshot, assumed ones included. So a
what-if without a pod has its cards free, and nothing needs a repair after a failure or a restart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.by_identity import ByIdentity
from kdsl.base.clock import Clock
from kdsl.base.errors import KdslError
from kdsl.base.events import EventPattern, Resource
from kdsl.base.times import SECOND
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.check.model.sharing import ASKED, CHOSEN, DEVICES, CheckedSharing
from kdsl.cluster.devices.codec import collapse
from kdsl.cluster.devices.pods import DevicePod, Phase
from kdsl.cluster.devices.policy import Policy, Weights
from kdsl.cluster.devices.usage import Holding, with_holdings
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.compiler import Probe
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.eval.values import EvalError
from kdsl.hooks.context import NodeAnnotator, PodAnnotator
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import hookimpl
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.answers import CardAnswers
from kdsl.plan.devices.attempt import NodeCards
from kdsl.plan.devices.demand import REFUSED, Demand, DemandKind
from kdsl.plan.devices.device_error import fault_of, rejection
from kdsl.plan.devices.facts import values_of
from kdsl.plan.devices.inventories import Inventories, device_node
from kdsl.plan.devices.locks import Locks, NodeLock
from kdsl.plan.devices.placing import Placed
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.devices.records import device_pod
from kdsl.plan.devices.review import Reviewed, Reviews
from kdsl.plan.devices.waking import Waking, gives_quota, is_node_gone
from kdsl.plan.rules.normalize import Scores

CHOSEN_NODE: Final = "hami.io/vgpu-node"
CHOSEN_AT: Final = "hami.io/vgpu-time"
BIND_PHASE: Final = "hami.io/bind-phase"
BIND_TIME: Final = "hami.io/bind-time"
ALLOCATING: Final = "allocating"

MOST_ASKED: Final = 64
"""The most demands of sleeping pods about which an event is asked."""
_MAX_DEMANDS: Final = 4096
_BEST: Final = 100
_SKIP: Final = Status(Code.SKIP)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A pod that requests cards, on the snapshot of its attempt.

    A reserved pod has the annotations in `written`, a pod that is being bound holds `locks`.
    """

    demand: Demand
    snapshot: Snapshot
    written: Mapping[str, str] | None = None
    locks: tuple[NodeLock, ...] = ()


class DevicesPlugin:
    """The devices of one profile. `key` is unique among all plugins, verdicts show `name`."""

    name = DEVICES

    def __init__(
        self,
        sharing: CheckedSharing,
        key: str,
        functions: CompiledFunctions,
        annotator: PodAnnotator,
        clock: Clock,
        nodes: NodeAnnotator | None = None,
    ) -> None:
        self.key = key
        self.site = sharing.origins[0].site if sharing.origins else ""
        programs = [DeviceProgram(device, functions) for device in sharing.devices]
        self._programs = {program.kind: program for program in programs}
        settings = sharing.values
        self.weight = int(settings["weight"])
        self._asks_chosen = settings[ASKED] == CHOSEN
        self._default = Policy(
            str(settings["nodePolicy"]),
            str(settings["cardPolicy"]),
            weights=Weights(
                int(settings["slotWeight"]), int(settings["coreWeight"]), int(settings["memoryWeight"])
            ),
        )
        self.records = tuple(program.record for program in programs)
        self._reviews = Reviews(tuple(self._programs.values()))
        self.inventories = Inventories(self._programs)
        self.answers = CardAnswers(self.inventories)
        self._waking = Waking(sharing.devices, functions.fns, self.records, self.inventories)
        self._annotator, self._clock = annotator, clock
        self._locks = None if nodes is None else Locks(nodes, clock)
        self._live: LiveSnapshot | None = None
        self._demands = ByIdentity[PodInfo, Demand | Status | None](self._demand_without_quota, _MAX_DEMANDS)

    # ---- filter ------------------------------------------------------------------------------------------

    def demand(self, pod: PodInfo, snapshot: Snapshot, is_admitted: bool = False) -> Demand | Status | None:
        """Return the demand of a pod, which a webhook may have admitted; None for no card, a status if the
        pod is refused.
        """
        if not pod.device_containers:
            return None
        try:
            quota = self.inventories.quota(snapshot, pod.namespace)
            reviewed = self._reviews.review(device_pod(pod), quota, is_admitted)
            if reviewed.refusal is not None or not reviewed.asks:
                return reviewed.refusal
            policy = self._default.of(reviewed.pod.annotations)
        except EvalError as error:
            return rejection(Code.UNRESOLVABLE, fault_of(error))
        except ValueError as error:
            return Status(Code.UNRESOLVABLE, (str(error),))
        admitted = reviewed.pod
        kinds = dict.fromkeys(kind for asked in reviewed.requests for kind in asked)
        parts = tuple([(kind, values_of(admitted, self._programs[kind].pod_parts)) for kind in kinds])
        pod_signature = (policy, parts)
        requests = tuple(tuple(asked.values()) for asked in reviewed.requests)
        key = (pod_signature, requests, admitted.containers)
        memo = self.answers.memo(pod_signature)
        return Demand(admitted, reviewed.requests, policy, quota, key, memo)

    def review(self, pod: DevicePod, snapshot: Snapshot) -> Reviewed:
        """Return the pod after admission; EvalError if a device fails."""
        return self._reviews.review(pod, self.inventories.quota(snapshot, pod.namespace))

    def _attempt(self, state: CycleState) -> _Attempt | None:
        attempt = state.values.get(self.key)
        return attempt if isinstance(attempt, _Attempt) else None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        self._live = nodes.snapshot.live
        demand = self._demand_alone(pod) or self.demand(pod, nodes.snapshot)
        if not isinstance(demand, Demand):
            if demand is not None:
                self._report(state, nodes.snapshot)
            return demand or _SKIP
        state.values[self.key] = _Attempt(demand, nodes.snapshot)
        state.local_filters.add(self.name)
        return None

    @hookimpl
    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        attempt = self._attempt(state)
        if attempt is None or self._asks_chosen:
            return None
        snapshot = nodes.snapshot
        column = self.answers.column(attempt.demand, snapshot, nodes.rows, self._what_ifs(nodes))
        if not snapshot.is_overlay:
            self._report(state, snapshot)
        return column

    def _what_ifs(self, nodes: NodeSet) -> list[NodeCards] | None:
        """Return the nodes of a what-if with their cards, None for nodes as they are."""
        snapshot = nodes.snapshot
        return [self.cards_in(snapshot, row) for row in nodes.rows.tolist()] if snapshot.is_overlay else None

    def _report(self, state: CycleState, snapshot: Snapshot) -> None:
        """Report the unreadable records of cards; they change no outcome by themselves."""
        faults = [Fault(DEVICES, each) for each in self.inventories.records.problems(snapshot)]
        state.faults += [fault for fault in faults if fault not in state.faults]

    def cards_in(self, what_if: Snapshot, row: int) -> NodeCards:
        """Return the node of a row with its cards, after pods that are not there yet have got theirs: those
        nominated to it, which the what-if has in addition.
        """
        node, before = what_if.info(row), what_if.live.info(row).pods
        known = set(map(id, before))
        more = [pod for pod in node.pods if id(pod) not in known]
        if more:
            keys = {pod.key for pod in before}
            # A pod on the node has the cards of its record, or none.
            more = [pod for pod in more if pod.key not in keys and not self._waking.is_recorded(pod)]
        if not more:
            return self.inventories.at(node)
        # With a quota, pods on other nodes decide, too.
        if any(self.inventories.limits(what_if.catalog, pod.namespace) for pod in more):
            return self._with_cards(what_if, row, more)
        return self.inventories.promised(node, tuple(more), lambda: self._with_cards(what_if, row, more))

    def _with_cards(self, what_if: Snapshot, row: int, pods: Iterable[PodInfo]) -> NodeCards:
        """Return the node of a row with its cards after some of its pods have got theirs."""
        node = what_if.info(row)
        at = self.inventories.at(node)
        for pod in pods:
            demand = self.demand(pod, what_if.what_if(row))
            if not isinstance(demand, Demand):
                continue
            found = self.answers.grant(demand, what_if, node, at)
            if isinstance(found, Placed):
                grants = {
                    kind: collapse([one.cards for one in allocation.containers], demand.pod.phases)
                    for kind, allocation in found.allocations.items()
                }
                cards = with_holdings(at.cards, [Holding(demand.pod, grants)])
                at = self.inventories.what_if(node, cards)
        return at

    # ---- score -------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Status | None:
        return _SKIP if self._asks_chosen or self._attempt(state) is None else None

    @hookimpl
    def score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Scores:
        """Return the fill level of the cards of each node, plus the `value` of devices."""
        attempt = self._attempt(state)
        if attempt is None:
            return np.zeros(len(nodes), np.int64)
        return self.answers.scores(attempt.demand, nodes.snapshot, nodes.rows, self._what_ifs(nodes))

    @hookimpl
    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, scores: Scores
    ) -> NDArray[np.int64]:
        """Map scores to 0..100; only the best nodes by the pod's policy have 100."""
        attempt = self._attempt(state)
        values = -scores if attempt is not None and attempt.demand.policy.spreads_nodes else scores
        least, best = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        if least == best:
            return np.full(len(values), _BEST, np.int64)
        shares = np.floor((values - least) / (best - least) * _BEST).astype(np.int64)
        return np.where(values == best, _BEST, np.minimum(shares, _BEST - 1))

    # ---- reserve and bind --------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Give the pod its cards: the assumed pod gets their annotations."""
        attempt = self._attempt(state)
        if attempt is None:
            return None
        row = attempt.snapshot.row_of(node)
        if row is None:
            return Status(Code.UNSCHEDULABLE, (f"node {node} is gone",))
        info = attempt.snapshot.info(row)
        found = self.answers.grant(attempt.demand, attempt.snapshot, info)
        if isinstance(found, Status):
            return Status(Code.UNSCHEDULABLE, found.reasons)
        try:
            written = self.annotations_for(attempt.demand, info, found)
        except EvalError as error:
            return rejection(Code.UNSCHEDULABLE, fault_of(error))
        state.values[self.key] = replace(attempt, written=written)
        self._annotator.assume(pod, written)
        return None

    @hookimpl
    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Unlock the node. The assumed pod leaves it with its annotations: they wake those that wait for its
        cards.
        """
        attempt = self._attempt(state)
        if attempt is not None and self._locks is not None:
            problem = self._locks.release(attempt.locks, node, pod.key)
            if problem is not None:
                raise KdslError(problem.message)

    @hookimpl
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Skip pods without cards."""
        attempt = self._attempt(state)
        return _SKIP if attempt is None or attempt.written is None else None

    @hookimpl
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Lock the node and write the annotations, which its device plugin reads once the pod is bound."""
        attempt = self._attempt(state)
        if attempt is None or attempt.written is None:
            return None
        if self._locks is not None:
            locks = self.locks_for(attempt.demand)
            problem = self._locks.acquire(locks, node, pod.key)
            if problem is not None:
                return problem
            state.values[self.key] = replace(attempt, locks=locks)
        seconds = str(self._clock.now() // SECOND)
        return self._annotator.write(pod, {**attempt.written, BIND_PHASE: ALLOCATING, BIND_TIME: seconds})

    def locks_for(self, demand: Demand) -> tuple[NodeLock, ...]:
        """Return the locks of the kinds that the pod's containers request; init containers need no lock."""
        kinds = {
            kind
            for phase, asked in zip(demand.pod.phases, demand.requests, strict=True)
            if phase is Phase.APP
            for kind in asked
        }
        locks = (self._programs[kind].lock for kind in sorted(kinds))
        return tuple(dict.fromkeys(lock for lock in locks if lock is not None))

    def annotations_for(self, demand: Demand, node: NodeInfo, placed: Placed) -> dict[str, str]:
        """Return all annotations of the placed pod, those of admission included.

        EvalError if one has no value.
        """
        now, at = self._clock.now(), device_node(node.facts, node.requested)
        written = {**demand.pod.annotations, CHOSEN_NODE: node.name, CHOSEN_AT: str(now // SECOND)}
        for kind, allocation in placed.allocations.items():
            written |= self._programs[kind].annotations(demand.pod, at, demand.policy, allocation, now)
        return written

    # ---- waking ------------------------------------------------------------------------------------------

    @hookimpl
    def events(self) -> tuple[EventPattern, ...]:
        return self._waking.events()

    @hookimpl
    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether an event may help a pod: without a quota, an event of one node only if the pod would
        get cards there after it. A lock of a node is no rejection, but an error.
        """
        if not self._waking.is_news(event):
            return False
        if event.resource is Resource.RESOURCE_QUOTA:
            return gives_quota(event, pod.namespace)
        if event.resource is Resource.TARGET_POD or not self._decides_alone(pod.namespace):
            return True
        kept = self._demands.of(pod)
        if is_node_gone(event) or isinstance(kept, Status):
            return False
        node = event.node_after
        return node is None or kept is None or self.answers.fits(self._with_memo(kept), node)

    @hookimpl
    def queueing_hints(self, pods: tuple[PodInfo, ...], event: ClusterEvent) -> Sequence[bool]:
        """Return `queueing_hint` for each pod. For many demands that would take as long as their attempts,
        unless only quotas decide.
        """
        is_about_quotas = event.resource is Resource.RESOURCE_QUOTA or is_node_gone(event)
        if len(pods) > MOST_ASKED and not is_about_quotas:
            return [self._waking.is_news(event)] * len(pods)
        return [self.queueing_hint(pod, event) for pod in pods]

    @hookimpl
    def hint_signature(self, pod: PodInfo) -> Hashable:
        """Return the values of a pod that the hint reads; None if other nodes decide, too."""
        found = self._demands.of(pod) if self._decides_alone(pod.namespace) else None
        if isinstance(found, Status):
            return DemandKind(pod.namespace, REFUSED)
        return None if found is None else DemandKind(pod.namespace, found.signature)

    def _demand_alone(self, pod: PodInfo) -> Demand | None:
        """Return the demand of a pod for which each node decides by itself; None for other pods."""
        kept = self._demands.of(pod) if self._decides_alone(pod.namespace) else None
        return self._with_memo(kept) if isinstance(kept, Demand) else None

    def _with_memo(self, kept: Demand) -> Demand:
        # The memo of an earlier attempt may be full, or forgotten.
        return kept.with_memo(self.answers.memo(kept.pod_signature))

    def _decides_alone(self, namespace: str) -> bool:
        """Return whether each node decides by itself about the pods of a namespace."""
        live = self._live
        return (
            live is not None
            and not self._asks_chosen
            and not self.inventories.limits(live.catalog, namespace)
        )

    def _demand_without_quota(self, pod: PodInfo) -> Demand | Status | None:
        """Return the demand of a pod without its memo: all memos together are bounded."""
        assert self._live is not None
        demand = self.demand(pod, self._live)
        return demand.without_memo() if isinstance(demand, Demand) else demand


def compile_devices(
    rules: RuleSet,
    profile: CheckedProfile,
    annotator: PodAnnotator,
    clock: Clock,
    steps: Steps = DEFAULT_STEPS,
    probe: Probe | None = None,
    nodes: NodeAnnotator | None = None,
    eager: bool = False,
) -> DevicesPlugin | None:
    """Return the devices of a profile, None if it has none. Without `nodes` they lock none.

    `eager` compiles them now; a probe must receive all conditions before the first pod.
    """
    if profile.sharing is None:
        return None
    functions = CompiledFunctions(rules.fns, probe, steps)
    plugin = DevicesPlugin(
        profile.sharing, f"{profile.qualified}/devices", functions, annotator, clock, nodes
    )
    if eager or probe is not None:
        for program in plugin.inventories.programs.values():
            program.compile()
    return plugin

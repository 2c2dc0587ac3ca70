"""Runs a workload through the engine: the cycle of live scheduling, with a binder in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter_ns
from types import MappingProxyType
from typing import TYPE_CHECKING

from kdsl.app import Settings, build_engine, devices_in_use, engine_options, narrowed
from kdsl.base.clock import ManualClock
from kdsl.base.errors import KdslError
from kdsl.base.garbage import settled_heap
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Condition, Decision, Detail
from kdsl.cycle.engine import Engine
from kdsl.hooks.context import NO_MANIFESTS
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.plugin import DevicesPlugin
from kdsl.records.manifests import KeptManifests
from kdsl.records.recorder import DecisionRecorder
from kdsl.report.cards import CardReport, count_demands
from kdsl.report.simulation import Simulation
from kdsl.report.summary import SummaryBuilder, requested_totals
from kdsl.sim.workload import Workload

if TYPE_CHECKING:
    from kdsl.explain.explanation import Explanation
    from kdsl.explain.inspection import Inspection

Stopwatch = Callable[[], int]
"""Returns nanoseconds since any start: for measurements only, no decision depends on it."""

NO_NODES: Mapping[str, Collection[str]] = MappingProxyType({})


class SimulatedEvictor:
    """Removes victims from the simulated cluster at once.

    A victim returns as a new pod, as its workload would create one; `returned` are those not queued yet. A
    victim returns only once: under rules that make pods evict each other forever, a run must still end.
    """

    def __init__(self, cluster: ClusterCache) -> None:
        self._cluster = cluster
        self._seen: set[str] = set()
        self._returned: list[PodInfo] = []

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        self._cluster.remove_pod(victim.key)
        if victim.key not in self._seen:
            self._seen.add(victim.key)
            self._returned.append(victim.with_fields(node_name="", nominated_node_name="", start_time=0))

    def take_returned(self) -> list[PodInfo]:
        """Return the pods that returned since the last call, in the order of their eviction."""
        returned, self._returned = self._returned, []
        return returned


def simulate(
    rules: RuleSet,
    workload: Workload,
    settings: Settings,
    on_decision: Callable[[], None] = lambda: None,
    record: Callable[[str], object] | None = None,
    attempts: int = 1,
    shows_idle_cards: bool = False,
    verdict_nodes: Mapping[str, Collection[str]] = NO_NODES,
) -> Simulation:
    """Give every pending pod an attempt in queue order and return the decisions with their summary.

    A preemptor gets another attempt, and so does a returned victim. With more `attempts` a rejected pod gets
    another one if an event since may have cured the rejection.

    `on_decision` is called after each. The decisions depend only on the arguments before it. `record` gets
    the lines of a record, for which the workload must have its manifests. With `shows_idle_cards` cards are
    reported even if no pod requests any. `verdict_nodes` are nodes by pod: the decisions about these pods
    contain the verdicts about these nodes.
    """
    decisions: list[Decision] = []
    pods = {pod.key: pod for pod in workload.pending}
    with simulated_engine(rules, workload, settings, record) as (engine, cluster, evictor), settled_heap():
        summary = SummaryBuilder(requested_totals(cluster.snapshot()))
        started = perf_counter_ns()
        for decision in engine.decisions(
            workload.pending, attempts, lambda turn: Detail.FULL if turn.key in verdict_nodes else None
        ):
            summary.observe(decision, perf_counter_ns() - started)
            if decision.verdicts and decision.pod in verdict_nodes:
                nodes = verdict_nodes[decision.pod]
                kept = tuple(verdict for verdict in decision.verdicts if verdict.node in nodes)
                decision = decision.with_fields(verdicts=kept)
            decisions.append(decision)
            on_decision()
            if decision.victims:
                engine.queue.add(pods[decision.pod])
            for pod in evictor.take_returned():
                pods[pod.key] = pod
                engine.queue.add(pod)
            started = perf_counter_ns()
        cards = _cards(rules, workload, settings, cluster.snapshot(), shows_idle_cards)
        return Simulation(decisions, summary.build(cluster.snapshot()), cards)


def _cards(
    rules: RuleSet, workload: Workload, settings: Settings, snapshot: Snapshot, shows_idle: bool
) -> CardReport | None:
    """Return the cards found by the devices of the first profile whose cards a pod of the workload requests.

    If no pod requests any, use the first profile whose devices find some, if idle cards are to be shown.
    """
    wanting = [pod for pod in (*workload.placed, *workload.pending) if pod.device_containers]
    schedulers = {pod.scheduler_name for pod in wanting}
    if not wanting and shows_idle:
        schedulers = {profile.scheduler for profile in rules.profiles.values()}
    infos = [snapshot.info(row) for row in snapshot.order.tolist()]
    found: tuple[DevicesPlugin, dict[str, tuple[Card, ...]]] | None = None
    for each in devices_in_use(rules, settings, schedulers):
        of_nodes = {info.name: each.inventories.cards(info) for info in infos}
        found = found or (each, of_nodes)
        if wanting or any(of_nodes.values()):
            found = each, of_nodes
            break
    if found is None:
        return None
    devices, cards = found
    demands = (devices.demand(pod, snapshot) for pod in wanting)
    requests = (
        request
        for demand in demands
        if isinstance(demand, Demand)
        for asked in demand.requests
        for request in asked.values()
    )
    return CardReport({name: of_node for name, of_node in cards.items() if of_node}, count_demands(requests))


def explain(
    rules: RuleSet,
    workload: Workload,
    settings: Settings,
    pod: PodInfo,
    inspection: Inspection | None = None,
) -> Explanation:
    """Explain the decision for `pod`, on the cluster state at its turn."""
    # A simulation does not need them, and their import takes a while.
    from kdsl.explain.inspection import Inspection
    from kdsl.explain.turn import Turns

    inspection = inspection or Inspection()
    if inspection.home:
        settings = replace(settings, percentage=100)
    with simulated_engine(rules, workload, settings) as (engine, cluster, _), settled_heap():
        for other in workload.waiting:
            engine.nominator.add(other)
        turns = Turns(engine, cluster, rules, settings.steps)
        explanation = turns.explain(workload.pending, pod, inspection)
        if explanation is None:
            raise KdslError(f"pod `{pod.key}` got no decision")
        return explanation


@contextmanager
def simulated_engine(
    rules: RuleSet,
    workload: Workload,
    settings: Settings,
    record: Callable[[str], object] | None = None,
) -> Iterator[tuple[Engine, ClusterCache, SimulatedEvictor]]:
    """Yield an engine over the cluster of a workload, with a binder and an evictor in memory."""
    cluster = workload.cluster()
    evictor = SimulatedEvictor(cluster)
    ports = MemoryBinder(cluster), ManualClock()
    recorder = None
    if record is not None:
        recorder = DecisionRecorder(record, workload.manifests, engine_options(rules, settings), cluster.pod)
        recorder.start(workload.cluster_ids())
        cluster.observe(recorder.notice)
    # A victim returns, and may select another scheduler.
    asked = {pod.scheduler_name for pod in (*workload.pending, *workload.placed)}
    settings = narrowed(rules, settings, asked)
    volumes = MemoryVolumes(cluster)
    annotations, claims = MemoryAnnotations(cluster), MemoryClaims(cluster)
    claims.follow()
    manifests = KeptManifests(workload.manifests) if workload.manifests else NO_MANIFESTS
    with build_engine(
        rules, cluster, *ports, settings, volumes, evictor, recorder, annotations, manifests, claims=claims
    ) as engine:
        yield engine, cluster, evictor
        if recorder is not None:
            recorder.finish()

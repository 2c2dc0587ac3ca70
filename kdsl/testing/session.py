"""Runs cases: the scheduling cycle over a cluster of fixtures, with a binder that only records.

Every decision is full: all nodes are judged, and a single feasible node is scored as well. Only a recorded
decision judges just the nodes that were judged when it was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kdsl.app import Settings, hook_tables
from kdsl.base.times import SECOND
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, Detail, Outcome, TieBreak
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.record import AttemptRecord
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.search import search
from kdsl.cycle.selection import select
from kdsl.cycle.waiting import WaitingPods
from kdsl.cycle.workers import Workers
from kdsl.eval.scalar.compiler import Probe
from kdsl.eval.scalar.meter import DEFAULT_STEPS
from kdsl.explain.cards import CardExplainer
from kdsl.hooks.context import PluginContext
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault, merged
from kdsl.plan.compile.device_conditions import CelConditions
from kdsl.testing.recorded import Recorded

_ALL_NODES = 100


@dataclass(frozen=True, slots=True)
class SessionCluster:
    """Nodes, the pods that run on them, and other objects."""

    nodes: Sequence[NodeFacts]
    bound: Sequence[PodInfo] = ()
    catalog: Sequence[CatalogObject] = ()

    def cache(self) -> ClusterCache:
        """Return a cache of the cluster."""
        cache = ClusterCache()
        for node in self.nodes:
            cache.add_node(node)
        for pod in self.bound:
            cache.add_pod(pod)
        for thing in self.catalog:
            cache.put(thing)
        return cache


@dataclass(frozen=True, slots=True)
class Queued:
    """The result of queueing pods: the rejected pods with the reasons, and the others in the queue's order.

    `decisions` are those of the accepted pods, in the same order; `faults` are the errors.
    """

    gated: Mapping[str, str]
    order: tuple[str, ...]
    decisions: tuple[Decision, ...]
    faults: tuple[Fault, ...] = ()


class _CaseClock:
    """A clock that always returns the time of the case."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time


class Session:
    """One compiled profile with its active plugins, for one case after the other."""

    def __init__(
        self,
        rules: RuleSet,
        profile: str,
        plugins: Mapping[str, Mapping[str, Any]],
        probe: Probe | None = None,
    ) -> None:
        self._binder, self._clock = MemoryBinder(ClusterCache()), _CaseClock()
        self._waiting: WaitingPods[Any] = WaitingPods()
        self._volumes = MemoryVolumes(self._binder.cluster)
        self._annotations = MemoryAnnotations(self._binder.cluster)
        self._claims = MemoryClaims(self._binder.cluster)
        ports = self._volumes, self._annotations
        context = PluginContext(
            self._binder, self._clock, self._waiting, *ports, claims=self._claims, conditions=CelConditions()
        )
        (self._table,) = hook_tables(rules, context, Settings(profile=profile, plugins=plugins, probe=probe))
        self._rules = rules.digest
        self.cards = CardExplainer.of(rules, rules.profiles[profile], DEFAULT_STEPS)

    def placed(self, pod: PodInfo) -> PodInfo | None:
        """Return the present state of a pod of the last case, None where it is not placed."""
        return self._binder.cluster.pod(pod.key)

    def decide(
        self, cluster: SessionCluster, pod: PodInfo, parallelism: int = 1, recorded: Recorded | None = None
    ) -> Decision:
        """Return the decision about one pod. Equal inputs give equal decisions.

        A recorded decision is repeated by an engine with the recorded state.
        """
        with self._engine(cluster, (pod,), parallelism, recorded) as engine:
            gated = engine.queue.add(pod)
            if gated is not None:
                message, profile = gated.status.message, self._table.profile
                faults = gated.status.faults
                return Decision(
                    pod.key, profile, Outcome.GATED, message=message, faults=faults, rules=self._rules
                )
            if pod.node_name:
                # The cycle skips such a pod as placed; the rules are run on it all the same.
                return self._judge(cluster, pod)
            decision = engine.schedule_one(pod)
        is_lone = decision.feasible == 1 and decision.outcome is Outcome.PLACED
        if recorded is not None or not is_lone:
            return decision
        # The engine does not score a single feasible node: errors in its score are found here.
        judged = self._judge(cluster, pod)
        new = [each for each in judged.faults if each.key not in {known.key for known in decision.faults}]
        return decision.with_fields(verdicts=judged.verdicts, faults=(*decision.faults, *new))

    def queue(self, cluster: SessionCluster, arrivals: Iterable[tuple[PodInfo, int]]) -> Queued:
        """Let pods arrive (at a second each), take them in the queue's order and schedule them."""
        arrivals = sorted(arrivals, key=lambda each: each[1])
        gated: dict[str, str] = {}
        decisions: list[Decision] = []
        faults: list[Fault] = []
        with self._engine(cluster, [pod for pod, _ in arrivals]) as engine:
            for pod, second in arrivals:
                self._clock.time = second * SECOND
                refused = engine.queue.add(pod)
                if refused is not None:
                    gated[pod.key] = refused.status.message
                    faults += refused.status.faults
            while (queued := engine.queue.pop()) is not None:
                decisions.append(engine.schedule_one(queued))
        faults += (fault for each in decisions for fault in each.faults)
        return Queued(gated, tuple(each.pod for each in decisions), tuple(decisions), merged(faults))

    def _engine(
        self,
        cluster: SessionCluster,
        pods: Iterable[PodInfo],
        parallelism: int = 1,
        recorded: Recorded | None = None,
    ) -> Engine:
        self._clock.time = 0
        self._binder.cluster = cluster.cache()
        self._claims.use(self._binder.cluster)
        self._volumes.cluster = self._annotations.cluster = self._binder.cluster
        tables = [replace(self._table, scheduler=name) for name in {pod.scheduler_name for pod in pods}]
        options = EngineOptions(percentage=_ALL_NODES) if recorded is None else recorded.options
        options = replace(options, parallelism=parallelism, detail=Detail.FULL, rules=self._rules)
        engine = Engine(tables, self._binder.cluster, self._clock, options, waiting=self._waiting)
        for promised in () if recorded is None else recorded.promised():
            engine.nominator.add(promised)
        return engine

    def _judge(self, cluster: SessionCluster, pod: PodInfo) -> Decision:
        """Filter, score and choose without placing; here a single feasible node is scored as well."""
        attempt = Attempt(self._table, pod, cluster.cache().snapshot())
        record = AttemptRecord(attempt, Detail.FULL, EngineOptions(rules=self._rules))
        workers = Workers(1)
        try:
            record.search = search(attempt, workers, _ALL_NODES)
            nodes = NodeSet(attempt.snapshot, record.search.feasible)
            if not len(nodes.rows):
                return record.decision(Outcome.UNSCHEDULABLE, message=record.diagnosis.message())
            record.scores = score_nodes(attempt, nodes)
        except PluginError as error:
            return record.decision(Outcome.ERROR, message=str(error), fault=error.fault)
        finally:
            workers.close()
        record.choice = select(record.scores.totals, TieBreak.HEAP, Random(0))
        return record.decision(Outcome.PLACED, node=nodes.names()[record.choice.index])

"""The scheduling cycle: takes pods to decisions, one after the other; the phases do what is in between.

Built by the composition root; driven by simulation, the live loop and tests. The engine holds what outlives
an attempt: where the next search starts, nominations, held pods and the random source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from types import TracebackType
from typing import Self

from kdsl.base.clock import Clock
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, Detail, Outcome, TieBreak
from kdsl.cycle.fit_error import NO_NODES
from kdsl.cycle.nominator import Nominator
from kdsl.cycle.placing import Placer, Reserved
from kdsl.cycle.ports import ClusterSource, DecisionSink, Router
from kdsl.cycle.postfilter import run_post_filters
from kdsl.cycle.queue import GatedPod, SchedulingQueue
from kdsl.cycle.record import Record
from kdsl.cycle.routing import Routes
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.search import SearchSettings, search
from kdsl.cycle.selection import Choice, select
from kdsl.cycle.waiting import WaitingPods
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.table import HookTable


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What a profile does not say. `percentage` is that of the nodes to find (0: adaptive) where the
    profile has none; `rules` is the digest of the rule set.

    `parallelism` and `run_length` (nodes judged at once) change the time a decision takes, never the
    decision.
    """

    seed: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    parallelism: int = 1
    percentage: int = 0
    run_length: int | None = None
    detail: Detail = Detail.SUMMARY
    rules: str = ""


class Engine:
    """One scheduler over one cluster. Not thread-safe: pods are decided one at a time."""

    def __init__(
        self,
        tables: Iterable[HookTable],
        cluster: ClusterSource,
        clock: Clock,
        options: EngineOptions = EngineOptions(),
        *,
        waiting: WaitingPods[Reserved] | None = None,
        sinks: Iterable[DecisionSink] = (),
        router: Router | None = None,
    ) -> None:
        self._routes = Routes(tables, router)
        self._cluster = cluster
        self._clock = clock
        self._options = options
        self._sinks = tuple(sinks)
        self._random = Random(options.seed)
        self._workers = Workers(options.parallelism)
        self._settings = SearchSettings(self._workers, options.percentage, options.run_length)
        self._start = 0
        self.nominator = Nominator()
        self.waiting = waiting if waiting is not None else WaitingPods[Reserved]()
        self._placer = Placer(cluster, clock, self.nominator, self.waiting)
        self.queue = SchedulingQueue(self._routes, clock)

    def decisions(self, pods: Iterable[PodInfo]) -> Iterator[Decision]:
        """Queue `pods` and decide them in its order: first the gated ones, last those that were held."""
        for pod in pods:
            self.nominator.add(pod)
            gated = self.queue.add(pod)
            if gated is not None:
                yield self._publish(self._gated(gated))
        while (queued := self.queue.pop()) is not None:
            yield self.schedule_one(queued)
        yield from self.settle()

    def schedule_one(self, item: PodInfo | QueuedPod) -> Decision:
        """Try to place one pod. Nothing a plugin does is raised."""
        return self._publish(self._decide(item.pod if isinstance(item, QueuedPod) else item))

    def settle(self) -> Iterator[Decision]:
        """Go on with held pods that were allowed, rejected or are out of time; the others stay held."""
        self.waiting.expire(self._clock.now())
        for reserved, rejection in self.waiting.take_settled():
            placer = self._placer
            yield self._publish(
                placer.bind(reserved) if rejection is None else placer.turn_away(reserved, rejection)
            )

    def close(self) -> None:
        """End the worker threads."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _publish(self, decision: Decision) -> Decision:
        for sink in self._sinks:
            sink.record(decision)
        return decision

    def _gated(self, gated: GatedPod) -> Decision:
        pod = gated.queued.pod
        table = self._routes.table_of(pod)
        profile = table.profile if table else ""
        return Decision(
            pod.key, profile, Outcome.GATED, message=gated.status.message, rules=self._options.rules
        )

    def _decide(self, pod: PodInfo) -> Decision:
        options = self._options
        table = self._routes.table_of(pod)
        profile = table.profile if table else ""
        reason = self._reason_to_skip(pod, table)
        if table is None or reason:
            return Decision(pod.key, profile, Outcome.SKIPPED, message=reason, rules=options.rules)
        attempt = Attempt(table, pod, self._cluster.snapshot())
        record = Record(attempt, options.detail, options.tie_break, options.rules)
        if not len(attempt.snapshot.order):
            self.nominator.clear(pod)
            return record.decision(Outcome.UNSCHEDULABLE, message=NO_NODES)
        try:
            node = self._find(attempt, record)
            if not node:
                return self._make_room(attempt, record)
        except PluginError as error:
            self.nominator.clear(pod)
            return record.decision(Outcome.ERROR, message=str(error))
        return self._placer.place(attempt, record.decision(Outcome.PLACED, node=node))

    def _reason_to_skip(self, pod: PodInfo, table: HookTable | None) -> str:
        if table is None:
            return f"no profile for scheduler {pod.scheduler_name}"
        if pod.is_terminating:
            return f"skip schedule deleting pod: {pod.key}"
        if pod.node_name or self._cluster.pod(pod.key):
            return f"skip schedule placed pod: {pod.key}"
        return ""

    def _find(self, attempt: Attempt, record: Record) -> str:
        """Search, score and choose a node; return an empty string where none is feasible."""
        pod = attempt.pod
        found = search(
            attempt,
            self._settings,
            start=self._start,
            nominated_node=self.nominator.node_of(pod),
            rivals=self.nominator.rivals(pod),
        )
        record.search = found
        self._start = found.next_start
        if found.verdicts.error is not None:
            raise found.verdicts.error
        nodes = NodeSet(attempt.snapshot, found.feasible)
        if not len(nodes.rows):
            return ""
        if len(nodes.rows) == 1:
            record.choice = Choice(0)
        else:
            record.scores = score_nodes(attempt, nodes)
            record.choice = select(record.scores.totals, self._options.tie_break, self._random)
        return attempt.snapshot.names[int(nodes.rows[record.choice.index])]

    def _make_room(self, attempt: Attempt, record: Record) -> Decision:
        """Let PostFilter help a pod that fits nowhere; it stays unschedulable, perhaps nominated."""
        diagnosis = record.diagnosis
        result = run_post_filters(attempt, diagnosis)
        if result.nominated is not None:
            record.nominated = result.nominated
            self.nominator.add(attempt.pod, result.nominated.node)
        message = replace(diagnosis, postfilter_message=result.message).message()
        return record.decision(Outcome.UNSCHEDULABLE, message=message)

"""The scheduling cycle: turns pods into decisions, one after the other, by running the phases.

Built by the composition root; driven by simulation, the live loop and tests. The engine holds the state that
outlives an attempt: the start of the next search, nominations, held pods and the number of attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Final, Self

from kdsl.base.clock import Clock
from kdsl.base.events import Action, Resource
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent, pod_actions
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.advice import fit_on
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.bindings import BindAtOnce, BindingResult, Bindings, Reserved
from kdsl.cycle.decision import Decision, Detail, Outcome, TieBreak
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.fit_error import NO_NODES
from kdsl.cycle.gate import GatedPod
from kdsl.cycle.judging import Contested
from kdsl.cycle.making_room import RoomMaker
from kdsl.cycle.nominator import Nominator
from kdsl.cycle.pending import rejectors_of
from kdsl.cycle.placing import Placer
from kdsl.cycle.ports import AttemptState, ClusterSource, Evictor, Router, Tracer
from kdsl.cycle.queue import SchedulingQueue
from kdsl.cycle.record import AttemptRecord
from kdsl.cycle.routing import Routes
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.search import rivals_by_row, search
from kdsl.cycle.selection import Choice, select
from kdsl.cycle.waiting import WaitingPods
from kdsl.cycle.waking import waking_events
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import merged
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.table import HookTable

_DEFAULTS: Final = EngineOptions()


class Engine:
    """One scheduler over one cluster. Not thread-safe: pods are decided one at a time."""

    def __init__(
        self,
        tables: Iterable[HookTable],
        cluster: ClusterSource,
        clock: Clock,
        options: EngineOptions = _DEFAULTS,
        *,
        waiting: WaitingPods[Reserved] | None = None,
        tracer: Tracer | None = None,
        router: Router | None = None,
        evictor: Evictor | None = None,
        bindings: Bindings | None = None,
    ) -> None:
        """Make an engine; without `bindings` it binds pods during the cycle."""
        self._routes = Routes(tables, router)
        self._cluster = cluster
        self._clock = clock
        self._tracer = tracer
        self._attempts = options.attempts
        self._workers = Workers(options.parallelism)
        self._options = options
        self._start = options.start
        self.nominator = Nominator(self._leaves_room, self._changes_place)
        self.waiting = waiting if waiting is not None else WaitingPods[Reserved]()
        self._placer = Placer(cluster, clock, self.nominator, self.waiting, bindings or BindAtOnce())
        self.queue = SchedulingQueue(
            self._routes,
            clock,
            is_promised=lambda node: bool(self.nominator.pods_of(node)),
            complete=cluster.complete,
        )
        took = self.queue.try_elsewhere
        self._room_maker = RoomMaker(cluster, self.nominator, self._placer, self._draws, evictor, took)
        cluster.observe(self.queue.notice, self.queue.listens)

    def decisions(
        self,
        pods: Iterable[PodInfo],
        attempts: int = 1,
        on_turn: Callable[[PodInfo], Detail | None] | None = None,
    ) -> Iterator[Decision]:
        """Queue `pods` and decide them in the queue's order: gated pods come first, held pods last.

        Each pod gets at most `attempts`: after the first it is tried again only where an event may have
        removed the cause of its rejection, and without backoff. Pods that are left stay in the queue.
        `on_turn` is called with a pod before its attempt, and returns the detail of the decision (None: the
        detail of the options); it must not change anything.
        """
        spent: list[QueuedPod] = []
        for pod in pods:
            gated = self.enqueue(pod)
            if gated is not None:
                yield gated
        while (queued := self.queue.pop()) is not None:
            if queued.attempts > attempts:
                spent.append(queued)
            else:
                yield self.schedule_one(queued, on_turn(queued.pod) if on_turn else None)
        for queued in spent:
            self.queue.put_back(queued)
        yield from self.settle()

    def enqueue(self, pod: PodInfo) -> Decision | None:
        """Queue a pod, which may have a nominated node; return the decision about a pod that is gated."""
        self.nominator.add(pod)
        gated = self.queue.add(pod)
        return None if gated is None else self._publish(self._routed(pod, self._gated(gated)))

    def schedule_one(self, item: PodInfo | QueuedPod, detail: Detail | None = None) -> Decision:
        """Try to place one pod. Exceptions of plugins are not raised. `detail` wins over the options'
        detail.
        """
        pod = item.pod if isinstance(item, QueuedPod) else item
        return self._publish(self._routed(pod, self._decide(pod, detail or self._options.detail)))

    def settle(self) -> Iterator[Decision]:
        """Continue with held pods that were allowed, rejected or timed out; the others stay held."""
        now = self._clock.now()
        self.waiting.expire(now)
        for reserved, rejection in self.waiting.take_settled(now):
            placer = self._placer
            yield self._publish(
                placer.bind(reserved) if rejection is None else placer.turn_away(reserved, rejection)
            )

    def finish(self, result: BindingResult) -> Decision | None:
        """End an asynchronous binding; return None where the pod was given up meanwhile."""
        decision = self._placer.finish(result)
        if decision is not None:
            return self._publish(decision)
        # The room of the pod was free at once, but what plugins reserved for it (volumes) only now is.
        pod = result.reserved.attempt.pod
        self.queue.notice(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before=pod))
        return None

    def give_up(self, pod: PodInfo) -> None:
        """Forget a deleted pending pod, wherever it is; its reserved room is free at once."""
        self._placer.give_up(pod.key)
        self.queue.delete(pod.key)
        self.nominator.delete(pod)

    def leave_queue(self, pod: PodInfo) -> None:
        """Forget that a pod is pending, because another client has bound it. What was kept for it may be free
        even if it is on its nominated node: it has no cards there.
        """
        self.queue.delete(pod.key)
        self.nominator.delete(pod)

    def takes(self, pod: PodInfo) -> bool:
        """Return whether a profile decides the pod."""
        return self._routes.table_of(pod) is not None

    def being_bound(self, key: str) -> PodInfo | None:
        """Return the pod `namespace/name` as it was when its binding began, None where it is not being
        bound.
        """
        reserved = self._placer.under_way.get(key)
        return None if reserved is None else reserved.attempt.pod

    @property
    def bindings_under_way(self) -> int:
        """Return the number of pods that are being bound asynchronously."""
        return len(self._placer.under_way)

    @property
    def options(self) -> EngineOptions:
        """Return the present options; `start` and `attempts` are those at the beginning."""
        return self._options

    @property
    def continuation(self) -> EngineOptions:
        """Return the options with which another engine continues this one's work."""
        return replace(self._options, start=self._start, attempts=self._attempts)

    def continue_from(self, options: EngineOptions) -> None:
        """Decide the next pod as an engine with this `continuation` would; the parallelism stays."""
        self._options = replace(options, parallelism=self._options.parallelism)
        self._start, self._attempts = options.start, options.attempts

    def adopt(self, tables: Iterable[HookTable], router: Router | None, options: EngineOptions) -> None:
        """Use other profiles from the next attempt on. Held pods finish with their old profiles.

        The engine keeps its state: the start of the next search, nominations, the queue.
        """
        self._routes.adopt(tables, router)
        if options.parallelism != self._workers.parallelism:
            self._workers.close()
            self._workers = Workers(options.parallelism)
        self._options = options
        self.queue.reroute()

    def close(self) -> None:
        """End the worker threads."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _publish(self, decision: Decision) -> Decision:
        if self._tracer is not None:
            self._tracer.record(decision)
        match decision.outcome:
            case Outcome.PLACED:
                self.queue.done(decision.pod)
            case Outcome.SKIPPED:
                self.queue.done(decision.pod, is_placed=False)
            case Outcome.BINDING:
                self.queue.leave(decision.pod)
            case Outcome.UNSCHEDULABLE | Outcome.ERROR:
                self.queue.requeue(decision.pod, rejectors_of(decision), self._promised_to(decision.pod))
        return decision

    def _promised_to(self, key: str) -> str:
        """Return the node for which the pending pod `namespace/name` is nominated."""
        pending = self.queue.pending(key)
        return "" if pending is None else self.nominator.node_of(pending.queued.pod)

    def _routed(self, pod: PodInfo, decision: Decision) -> Decision:
        """Return the decision with the faults added of the profile's selection, and of hints that gave the
        pod this attempt.
        """
        queue = self.queue
        faults = self._routes.faults_of(pod)
        if queue.has_faults:
            faults = (*faults, *queue.take_faults(pod.key))
        return decision.with_fields(faults=merged((*faults, *decision.faults))) if faults else decision

    def _begin(self, pod: PodInfo) -> None:
        """Pass the state that the next attempt depends on to the tracer, if any."""
        if self._tracer is not None:
            nominator = self.nominator
            state = AttemptState(self._start, self._attempts, nominator.node_of(pod), nominator.promised())
            self._tracer.begin(pod, state)
        self._attempts += 1

    def _draws(self) -> Random:
        """Return the random generator of this attempt: its seed is the engine's seed and the attempt's
        number.
        """
        return Random(f"{self._options.seed}/{self._attempts}")

    def _leaves_room(self, pod: PodInfo) -> None:
        """Report to the queue that a node is no longer promised to `pod`: other pods treat that as if the pod
        had left the node.
        """
        self.queue.notice(
            ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before=pod, priority=pod.priority)
        )

    def _changes_place(self, before: PodInfo, after: PodInfo) -> None:
        """Report to the queue that a pod changes for which a node is promised: it may leave room there, or no
        longer repel others.
        """
        if pod_actions(before, self._cluster.complete(after)):
            self.queue.notice(
                ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before=before, priority=before.priority)
            )

    def attempt(self, pod: PodInfo) -> tuple[Attempt, Contested] | None:
        """Return an attempt for `pod`, with the nominated pods that it must respect by row; None where no
        profile takes the pod.
        """
        table = self._routes.table_of(pod)
        if table is None:
            return None
        attempt = Attempt(table, pod, self._cluster.snapshot())
        return attempt, rivals_by_row(attempt, self.nominator.rivals(attempt.pod))

    def preview(self, pod: PodInfo) -> Decision | None:
        """Return a full decision for `pod` without any effect; None where no profile takes the pod.

        No pod is assumed or preempted, and no sink is called. The next search starts elsewhere, as after any
        attempt.
        """
        found = self.attempt(pod)
        if found is None:
            return None
        attempt, _ = found
        record = AttemptRecord(attempt, Detail.FULL, self._options)
        if not len(attempt.snapshot.order):
            return record.decision(Outcome.UNSCHEDULABLE, message=NO_NODES)
        try:
            node = self._find(attempt, record)
        except PluginError as error:
            return record.decision(Outcome.ERROR, message=str(error), fault=error.fault)
        if node:
            return record.decision(Outcome.PLACED, node=node)
        return record.decision(Outcome.UNSCHEDULABLE, message=record.diagnosis.message())

    def place_on(self, pod: PodInfo, node: str) -> Decision | None:
        """Place a pod on the node that another scheduler chose, if it fits there; None without a profile.

        The pod need not be in the queue.
        """
        found = self.attempt(pod)
        if found is None:
            return None
        self._begin(pod)
        attempt, contested = found
        record = AttemptRecord(attempt, self._options.detail, self._options)
        try:
            rejection = fit_on(attempt, contested, node)
        except PluginError as error:
            return record.decision(Outcome.ERROR, message=str(error), fault=error.fault)
        if rejection is not None:
            return record.decision(Outcome.UNSCHEDULABLE, message=rejection.message)
        return self._publish(self._place(attempt, record.decision(Outcome.PLACED, node=node)))

    def waking_events(self, key: str) -> tuple[str, ...]:
        """Return in words the events that would give the pending pod `namespace/name` another attempt."""
        pending = self.queue.pending(key)
        if pending is None:
            return ()
        return waking_events(pending, self._routes.table_of(pending.queued.pod))

    def _gated(self, gated: GatedPod) -> Decision:
        pod = gated.queued.pod
        self._begin(pod)
        table, status = self._routes.table_of(pod), gated.status
        profile, rules = (table.profile, table.rules) if table else ("", "")
        return Decision(
            pod.key,
            profile,
            Outcome.GATED,
            message=status.message,
            faults=status.faults,
            rules=rules or self._options.rules,
        )

    def _decide(self, pod: PodInfo, detail: Detail) -> Decision:
        self._begin(pod)
        table = self._routes.table_of(pod)
        reason = self._reason_to_skip(pod, table)
        if table is None:
            # No room is kept for a pod that this scheduler does not decide (any more).
            self.nominator.delete(pod)
        if table is None or reason:
            profile = table.profile if table else ""
            return Decision(pod.key, profile, Outcome.SKIPPED, message=reason, rules=self._options.rules)
        attempt = Attempt(table, pod, self._cluster.snapshot())
        record = AttemptRecord(attempt, detail, self._options)
        if not len(attempt.snapshot.order):
            self.nominator.clear(pod)
            return record.decision(Outcome.UNSCHEDULABLE, message=NO_NODES)
        try:
            node = self._find(attempt, record)
            if not node:
                return self._room_maker.make_room(attempt, record)
        except PluginError as error:
            self.nominator.clear(pod)
            return record.decision(Outcome.ERROR, message=str(error), fault=error.fault)
        return self._place(attempt, record.decision(Outcome.PLACED, node=node))

    def _place(self, attempt: Attempt, decision: Decision) -> Decision:
        """Reserve the decision's node, and bind the pod there.

        If a plugin turns it away at once, nothing has changed for other pods, and none was tried meanwhile.
        With an event for that, two such pods would wake each other for ever.
        """
        promised, is_undone = self.nominator.node_of(attempt.pod), False
        self.queue.postpone(attempt.pod)
        try:
            reserved, ended = self._placer.reserve(attempt, decision)
            is_undone = ended is not None and ended.outcome is not Outcome.WAITING
        finally:
            # The room of a nominated pod was kept for it before, and is free now.
            self.queue.resume(drops=is_undone and not promised)
        return ended or self._placer.bind(reserved)

    def _reason_to_skip(self, pod: PodInfo, table: HookTable | None) -> str:
        if table is None:
            return f"no profile for scheduler {pod.scheduler_name}"
        if pod.is_terminating:
            return f"skip schedule deleting pod: {pod.key}"
        if pod.node_name or self._cluster.pod(pod.key):
            return f"skip schedule placed pod: {pod.key}"
        return ""

    def _find(self, attempt: Attempt, record: AttemptRecord) -> str:
        """Search, score and choose a node; return an empty string where none is feasible."""
        pod = attempt.pod
        found = search(
            attempt,
            self._workers,
            self._options.percentage,
            start=self._start,
            nominated_node=self.nominator.node_of(pod),
            rivals=self.nominator.rivals(pod),
        )
        record.search = found
        self._start = found.next_start
        if found.verdicts.error is not None:
            raise found.verdicts.error
        rows = found.verdicts.feasible
        if not len(rows):
            return ""
        if len(rows) == 1:
            choice = Choice(0)
        else:
            record.scores = scores = score_nodes(attempt, NodeSet(attempt.snapshot, rows))
            by = self._options.tie_break
            random = self._draws() if by is TieBreak.RANDOM else None
            choice = select(scores.points, by, random, scores.shared)
        record.choice = choice
        return attempt.snapshot.names[rows.item(choice.index)]

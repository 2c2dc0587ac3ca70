"""The events of a run in their order; after those of each time the engine decides.

Deciding takes no time. A pod ends when its duration is over, is evicted when it is preempted or its node
goes, and comes back; it is deleted when its owner deletes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kdsl.base.errors import KdslError
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.pending import Rejectors, rejectors_of
from kdsl.hooks.specs import QueuedPod
from kdsl.lab.time.agenda import Agenda, What
from kdsl.lab.time.autoscaler import Autoscaler
from kdsl.lab.time.fleet import Fleet
from kdsl.lab.time.meter import Meter
from kdsl.lab.time.plan import AfterEviction, Stop, TimePlan, nanoseconds
from kdsl.lab.time.pod_log import PodLog
from kdsl.lab.time.world import EPOCH, KindNumbers, TimedCluster
from kdsl.lab.timed import Arrival, NodeChange, TimedWorkload

MOST_EVICTIONS: Final = 1000
"""A pod that is evicted more often ends the run with an error: rules make pods evict each other forever."""


class Simulation:
    """A run that goes on. After `run`, `logs` are the histories of all pods by key."""

    def __init__(
        self,
        world: TimedCluster,
        plan: TimePlan,
        fleet: Fleet,
        meter: Meter,
        scaler: Autoscaler | None,
        *,
        shares_kinds: bool,
    ) -> None:
        self._world, self._engine, self._cluster = world, world.engine, world.cluster
        self._plan, self._fleet, self._meter, self._scaler = plan, fleet, meter, scaler
        self._kinds = KindNumbers() if shares_kinds else None
        self._until = None if plan.until is None else nanoseconds(plan.until)
        self._agenda = Agenda()
        self.logs: dict[str, PodLog] = {}
        self._open = 0
        # Counts the changes of the cluster.
        self._version = 0
        # The last rejection of each kind of pods, see `_attempt`.
        self._failed: dict[int, Decision] = {}
        # The pods without a node whose last attempt ended in a rejection, and those that no event wakes,
        # which the queue tries again after a while: each with the version at which it failed.
        self._rejected: dict[str, PodInfo] = {}
        self._unwoken: dict[str, int] = {}
        self._last_round = -1
        self.late = 0
        self._engine.queue.wakes_sleepers = plan.flush

    def run(self, workload: TimedWorkload) -> None:
        self._begin(workload)
        while (at := self._next()) is not None:
            if self._until is not None and at > self._until:
                break
            self._go_to(at)
            self._happen()
            if self._is_over():
                break
        if self._until is not None and not self._is_over():
            self._go_to(max(self._until, self._world.now))
        self._meter.sample()

    def _is_over(self) -> bool:
        most = self._plan.most_pending
        if most is not None and self._meter.pending > most:
            return True
        return self._plan.stop is Stop.ENDED and not self._open

    def _begin(self, workload: TimedWorkload) -> None:
        for pod in workload.placed:
            if pod.is_finished:
                continue
            log = self.logs[pod.key] = PodLog(pod, None, None)
            log.bind(0, pod.node_name, ())
        for arrival in workload.arrivals:
            duration = None if arrival.duration is None else nanoseconds(arrival.duration)
            self.logs[arrival.pod.key] = PodLog(arrival.pod, None, duration)
            self._agenda.add(nanoseconds(arrival.at), What.ARRIVAL, arrival)
        for change in workload.node_changes:
            self._agenda.add(nanoseconds(change.at), What.NODE, change)
        self._open = len(workload.arrivals)
        for info in self._cluster.nodes():
            self._see(info.name)
        self._meter.rate = self._fleet.rate

    # ---- time --------------------------------------------------------------------------------------------

    def _next(self) -> int | None:
        """Return the time of the next event, None if nothing can happen any more."""
        now = self._world.now
        times = [self._agenda.next]
        if self._scaler is not None:
            times.append(self._scaler.next_look(now))
        if len(self._engine.waiting):
            deadline = self._engine.waiting.deadline
            times.append(None if deadline is None else deadline - EPOCH)
        known = [time for time in times if time is not None]
        if known:
            due = self._next_try()
            return max(now, min(known) if due is None else min(*known, due))
        if self._last_round == self._version or not self._meter.pending:
            return None
        return now if self._try_all() else None

    def _next_try(self) -> int | None:
        """Return the time at which the queue tries a pod again without an event, if that may help: without a
        change since its last attempt it fails again.
        """
        due = self._engine.queue.next_due
        if due is None:
            return None
        helps = any(version != self._version for version in self._unwoken.values())
        return due - EPOCH if helps or self._plan.flush else None

    def _try_all(self) -> bool:
        """Try every pending pod once more, since no event will come; return whether some pod was placed."""
        self._last_round = self._version
        queue = self._engine.queue
        queue.activate([*dict.fromkeys((*self._rejected, *self._unwoken, *queue.gated))])
        before = self._version
        self._decide()
        self.late += self._version != before
        return self._version != before

    def _go_to(self, at: int) -> None:
        self._meter.pass_to(at)
        self._world.clock.advance(at - self._world.now)

    def _happen(self) -> None:
        """Let everything of the present time happen."""
        now = self._world.now
        for what, about in self._agenda.take(now):
            self._apply(what, about)
        self._decide()
        scaler = self._scaler
        if scaler is not None and scaler.next_look(now) == now:
            scaler.look(now)
            self._grow(scaler, now)
            for name in scaler.shrink(now, self._cluster):
                self._lose_node(name)

    def _apply(self, what: What, about: Any) -> None:
        match what:
            case What.ARRIVAL:
                self._arrive(about)
            case What.END:
                log, life = about
                if log.life == life:
                    self._end(log)
            case What.DELETE:
                self._delete(about)
            case What.RETURN:
                log, life = about
                if log.life == life:
                    self._enqueue(log)
            case What.NODE:
                self._change(about)
            case What.READY:
                self._ready(about)

    # ---- pods --------------------------------------------------------------------------------------------

    def _arrive(self, arrival: Arrival) -> None:
        log = self.logs[arrival.pod.key]
        log.arrive(self._world.now)
        self._meter.pending += 1
        if arrival.deleted is not None:
            self._agenda.add(max(nanoseconds(arrival.deleted), self._world.now), What.DELETE, log)
        self._enqueue(log)

    def _enqueue(self, log: PodLog) -> None:
        """Queue a pod. It is created now: when it comes back, it is a new pod of its workload."""
        pod = log.pod.with_fields(created_at=self._world.clock.now(), node_name="", start_time=0)
        gated = self._engine.enqueue(pod)
        if gated is not None:
            log.reason = gated.message

    def _bound(self, log: PodLog, node: str) -> None:
        now = self._world.now
        self._forget(log.key)
        self._meter.pending -= 1
        log.bind(now, node, self._see(node))
        self._version += 1
        if log.left is not None:
            self._agenda.add(now + log.left, What.END, (log, log.life))

    def _end(self, log: PodLog) -> None:
        node = log.node
        self._cluster.remove_pod(log.key)
        log.end(self._world.now)
        self._open -= log.arrived is not None
        self._version += 1
        if node is not None:
            self._see(node)

    def _delete(self, log: PodLog) -> None:
        if log.is_gone:
            return
        if log.is_bound:
            self._end(log)
            return
        self._engine.give_up(log.pod)
        self._forget(log.key)
        self._meter.pending -= 1
        self._open -= 1
        log.end(self._world.now)
        self._version += 1

    def _evicted(self, log: PodLog) -> None:
        node, now = log.node, self._world.now
        log.evict(now, self._plan.after_eviction is AfterEviction.CONTINUES)
        if log.evictions > MOST_EVICTIONS:
            raise KdslError(f"pod `{log.key}` was evicted more than {MOST_EVICTIONS} times")
        self._meter.pending += 1
        self._meter.evictions += 1
        self._version += 1
        self._agenda.add(now + nanoseconds(self._plan.return_after), What.RETURN, (log, log.life))
        if node is not None:
            self._see(node)

    # ---- nodes -------------------------------------------------------------------------------------------

    def _change(self, change: NodeChange) -> None:
        if change.facts is None:
            self._lose_node(change.name)
            return
        self._cluster.add_node(change.facts)
        self._version += 1
        self._see(change.name)

    def _grow(self, scaler: Autoscaler, now: int) -> None:
        grown = scaler.grow(tuple(self._rejected.values()), self._cluster)
        if grown is None:
            return
        group, count = grown
        for name in self._fleet.order(group, count):
            self._agenda.add(now + nanoseconds(group.startup), What.READY, name)
        self._meter.rate = self._fleet.rate

    def _ready(self, name: str) -> None:
        self._cluster.add_node(self._fleet.starting.pop(name))
        self._version += 1
        self._see(name)

    def _lose_node(self, name: str) -> None:
        """Remove a node; the pods on it come back like evicted ones."""
        info = self._cluster.snapshot().node(name)
        if info is None:
            return
        self._cluster.remove_node(name)
        for pod in info.pods:
            self._cluster.remove_pod(pod.key)
            self._evicted(self.logs[pod.key])
        self._see(name)
        if name in self._fleet.group_of:
            self._fleet.remove(name)
            self._meter.rate = self._fleet.rate
        if self._scaler is not None and self._rejected:
            self._scaler.needs_room = True
        self._version += 1

    def _see(self, name: str) -> tuple[int, ...]:
        info = self._cluster.snapshot().node(name)
        if self._scaler is not None:
            self._scaler.see(name, info, self._world.now)
        return self._meter.see(name, info)

    # ---- decisions ---------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Decide until no pod is left to try now."""
        engine = self._engine
        while True:
            if len(engine.waiting):
                self._take_all(engine.settle())
            queued = engine.queue.pop()
            if queued is None:
                return
            self._attempt(queued)

    def _attempt(self, queued: QueuedPod) -> None:
        """Decide a pod, unless one of its kind was rejected and sleeps on.

        No event since then may have cured the rejection of that pod, so none has cured that of this one.
        """
        engine, pod = self._engine, queued.pod
        if self._kinds is None or engine.nominator.node_of(pod):
            self._take(engine.schedule_one(queued))
            return
        kind = self._kinds.of(pod)
        known = self._failed.get(kind)
        if known is not None and engine.queue.place_of(known.pod) == "unschedulable":
            rejectors = rejectors_of(known)
            engine.queue.requeue(pod.key, rejectors)
            self._reject(known, pod, rejectors)
            return
        decision = engine.schedule_one(queued)
        before = self._version
        self._take(decision)
        if decision.outcome is Outcome.UNSCHEDULABLE and not decision.nominated and before == self._version:
            self._failed[kind] = decision
        else:
            self._failed.pop(kind, None)

    def _take_all(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            self._take(decision)

    def _take(self, decision: Decision) -> None:
        log = self.logs[decision.pod]
        match decision.outcome:
            case Outcome.PLACED:
                self._bound(log, decision.node)
            case Outcome.WAITING:
                self._see(decision.node)
                self._version += 1
            case _:
                self._reject(decision, log.pod, rejectors_of(decision))
                if decision.turned_away is not None:
                    self._version += 1
        for victim in self._world.take_evicted():
            self._evicted(self.logs[victim.key])

    def _reject(self, decision: Decision, pod: PodInfo, rejectors: Rejectors) -> None:
        self.logs[pod.key].reason = decision.message
        self._forget(pod.key)
        if decision.outcome is Outcome.UNSCHEDULABLE:
            self._rejected[pod.key] = pod
            if self._scaler is not None:
                self._scaler.needs_room = True
        if not rejectors and decision.outcome is not Outcome.SKIPPED:
            self._unwoken[pod.key] = self._version

    def _forget(self, key: str) -> None:
        self._rejected.pop(key, None)
        self._unwoken.pop(key, None)

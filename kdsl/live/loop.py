"""The scheduling loop: applies changes, decides, and hands out writes. It blocks only while idle.

One thread runs it and alone uses cache, queue and engine. Slow work, above all requests to the API server,
happens on other threads and comes back as a message.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from kdsl.app import Scheduler
from kdsl.base.clock import Clock
from kdsl.base.times import SECOND
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.bindings import BindingEnd, BindingResult
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.pending import NOBODY
from kdsl.hooks.specs import QueuedPod
from kdsl.live.cache_feed import CacheFeed
from kdsl.live.watching.changes import ObjectChange
from kdsl.live.watching.inbox import Inbox
from kdsl.live.writing.binder import BindingOutcome, LiveBinder
from kdsl.live.writing.evictions import PlannedPreemption
from kdsl.live.writing.outlets import Outlets
from kdsl.live.writing.ports import Victims

CHANGES_AT_ONCE: Final = 2_000
DECISIONS_AT_ONCE: Final = 64
"""The most changes, and then the most decisions, of one turn."""
LONGEST_WAIT: Final = 0.5
"""Seconds after which an idle loop checks the clock and whether it leads."""
_MOST_UNMADE: Final = 1_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gates:
    """The conditions for deciding pods: `leads` and `is_synced` are called before each decision.

    Without `takes_pods` pods stay in the queue: the loop only completes bindings that others start.
    """

    leads: Callable[[], bool] = lambda: True
    is_synced: Callable[[], bool] = lambda: True
    takes_pods: bool = True


class LoopListener(Protocol):
    """Gets decisions, on the scheduling thread; it must not raise or wait."""

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Note an attempt, and its seconds."""
        ...

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Note the end of a pod that had a node: its binding ended, or Permit rejected it."""
        ...


@dataclass(slots=True)
class LoopCounts:
    """Counts of the loop, for metrics.

    `crashes` are attempts, changes and messages that raised an unexpected error; `late` are bindings that
    ended after their pod was gone.
    """

    decisions: int = 0
    crashes: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True)
class LoopParts:
    """The parts of a loop."""

    engine: Engine
    cache: ClusterCache
    feed: CacheFeed
    binder: LiveBinder
    outlets: Outlets
    victims: Victims
    clock: Clock


class SchedulingLoop:
    """The loop of one scheduler. For the scheduling thread, except `stop_deciding`."""

    def __init__(self, inbox: Inbox, parts: LoopParts, gates: Gates) -> None:
        self._inbox, self._gates = inbox, gates
        self._engine, self._cache, self._feed = parts.engine, parts.cache, parts.feed
        self._binder, self._outlets = parts.binder, parts.outlets
        self._victims, self._clock = parts.victims, parts.clock
        self._is_stopping = self._led = False
        self._unmade: dict[str, None] = {}
        """The uids of preemptors whose last preemption failed, the oldest first."""
        self._listeners: list[LoopListener] = []
        self._change_listeners: list[Callable[[ObjectChange], object]] = []
        self.counts = LoopCounts()

    def listen(self, listener: LoopListener) -> None:
        """Call `listener` for every decision."""
        self._listeners.append(listener)

    def before_each(self, listener: Callable[[ObjectChange], object]) -> None:
        """Call `listener` with each change before it is applied; on the scheduling thread."""
        self._change_listeners.append(listener)

    def stop_deciding(self) -> None:
        """Stop deciding pods; bindings under way continue."""
        self._is_stopping = True

    @property
    def is_drained(self) -> bool:
        """Return whether no binding is under way."""
        return not self._engine.bindings_under_way

    def turn(self, longest: float = LONGEST_WAIT) -> None:
        """Take changes and messages, waiting up to `longest` seconds for the first; then decide some pods."""
        messages, changes = self._inbox.take(CHANGES_AT_ONCE, self.patience(longest))
        for message in messages:
            self._safely(message)
        for change in changes:
            for listener in self._change_listeners:
                self._safely(partial(listener, change))
            self._safely(partial(self._feed.take, change))
        self._follow_lease()
        if not self._may_decide:
            self._engine.queue.flush()
            return
        self._safely(self._settle)
        if not self._gates.takes_pods:
            return
        for _ in range(DECISIONS_AT_ONCE):
            if not self._may_decide or not self._decide_next():
                return

    def finish(self, settled: BindingOutcome) -> None:
        """Apply the result of a binding."""
        result = self._as_seen(settled.result)
        pod = result.reserved.attempt.pod
        decision = self._engine.finish(result)
        if decision is None:
            self.counts.late += 1
            return
        if decision.outcome is Outcome.PLACED:
            # Without the lease a binding that only the watch shows is that of the new leader, who reports it.
            is_told = settled.result.end is BindingEnd.BOUND or self._gates.leads()
        else:
            is_told = not settled.is_quiet and decision.outcome is not Outcome.SKIPPED and self._gates.leads()
        self._hand_out(decision, pod, is_quiet=not is_told)
        self._report_end(decision, pod)

    def adopt(self, made: Scheduler) -> None:
        """Use other rules from the next pod on; bindings under way end by the old rules."""
        self._engine.adopt(made.tables, made.router, made.options)
        self._feed.reroute()

    def room_is_made(self, preemption: PlannedPreemption, problem: str) -> None:
        """Activate a preemptor: its victims are being deleted, or that failed."""
        pod = preemption.preemptor
        pending = self._engine.queue.pending(pod.key)
        if pending is None or pending.queued.pod.uid != pod.uid:
            return  # a later pod of its name may wait for room of its own
        self._engine.queue.let_go(pod.key)
        if problem:
            self._try_again(pod)
        else:
            self._unmade.pop(pod.uid, None)

    # ---- deciding ----------------------------------------------------------------------------------------

    @property
    def _may_decide(self) -> bool:
        gates = self._gates
        return not (self._is_stopping or self._binder.is_full) and gates.leads() and gates.is_synced()

    def patience(self, longest: float) -> float:
        """Return how many seconds the loop may wait for changes, at most `longest`."""
        if not self._may_decide:
            return longest
        engine, now = self._engine, self._clock.now()
        takes_pods = self._gates.takes_pods
        if (takes_pods and engine.queue.has_next) or engine.waiting.is_any_settled:
            return 0.0
        next_due = engine.queue.next_due if takes_pods else None
        due = [time for time in (next_due, engine.waiting.deadline) if time is not None]
        return max(0.0, min([longest, *((time - now) / SECOND for time in due)]))

    def _follow_lease(self) -> None:
        leads = self._gates.leads()
        if self._led and not leads:
            self._safely(self._outlets.stand_down)
        self._led = leads

    def _decide_next(self) -> bool:
        """Decide the next pod; return False if there is none."""
        engine = self._engine
        queued = engine.queue.pop()
        if queued is None:
            return False
        pod = queued.pod
        self.counts.decisions += 1
        started = time.perf_counter()
        try:
            decision = engine.schedule_one(queued)
        except Exception:  # noqa: BLE001 - the thread must survive any error
            self._recover(pod)
        else:
            seconds = time.perf_counter() - started
            self._safely(lambda: self._hand_out(decision, pod))
            for listener in self._listeners:
                listener.decided(decision, queued, seconds)
        return True

    def _settle(self) -> None:
        for decision in self._engine.settle():
            pod = self._pod_of(decision.pod)
            if pod is not None:
                self._hand_out(decision, pod)
                self._report_end(decision, pod)

    def _report_end(self, decision: Decision, pod: PodInfo) -> None:
        for listener in self._listeners:
            listener.ended(decision, pod)

    def _hand_out(self, decision: Decision, pod: PodInfo, *, is_quiet: bool = False) -> None:
        """Pass a decision to all listeners, and evict its victims."""
        victims = self._victims.take()
        if decision.victims:
            self._make_room(decision, pod, victims)
        if not is_quiet:
            self._outlets.publish(decision, pod, self._engine.nominator.node_of(pod))

    def _make_room(self, decision: Decision, pod: PodInfo, victims: Sequence[Any]) -> None:
        """Evict victims; the preemptor waits until their deletion has begun.

        Victims that are not bound yet were already sent back in memory.
        """
        removed = {victim.key for victim, _ in victims}
        for each in decision.victims:
            stopped = self._cache.pod(each.pod) if each.pod not in removed else None
            if stopped is not None:
                self._outlets.publish_stopped(stopped, pod, decision.nominated)
        if not victims:
            return
        queue = self._engine.queue
        queue.hold(pod.key)
        if not self._outlets.make_room(pod, decision, victims):
            queue.let_go(pod.key)
            self._try_again(pod)

    def _try_again(self, pod: PodInfo) -> None:
        """Activate a preemptor for which no room could be made: at once, as in kube-scheduler, but after its
        backoff if that fails again. A missing right would otherwise cause requests without end.
        """
        is_repeated = pod.uid in self._unmade
        self._unmade[pod.uid] = None
        if len(self._unmade) > _MOST_UNMADE:
            del self._unmade[next(iter(self._unmade))]
        queue = self._engine.queue
        if is_repeated:
            queue.back_off(pod.key)
        else:
            queue.activate([pod.key])

    # ---- errors ------------------------------------------------------------------------------------------

    def _as_seen(self, result: BindingResult) -> BindingResult:
        """Count a binding as done if the watch shows it: then only its answer failed."""
        pod, node = result.reserved.attempt.pod, result.reserved.decision.node
        placed = self._cache.pod(pod.key)
        if result.end is BindingEnd.BOUND or placed is None or placed.uid != pod.uid:
            return result
        if self._cache.is_assumed(pod.key):
            return result
        end = BindingEnd.BOUND if placed.node_name == node else BindingEnd.DROPPED
        return BindingResult(result.reserved, end, result.message)

    def _recover(self, pod: PodInfo) -> None:
        """Recover from an attempt with an unexpected error: the pod is tried again later."""
        self.counts.crashes += 1
        _LOG.exception("the attempt for pod %s ended with an error", pod.key)
        self._victims.take()
        key, engine = pod.key, self._engine
        if self._cache.is_assumed(key) and engine.being_bound(key) is None and key not in engine.waiting:
            self._cache.forget(key)
        engine.queue.requeue(key, NOBODY)

    def _safely(self, step: Callable[[], object]) -> None:
        """Run a step; its error is logged and counted, and does not end the thread."""
        try:
            step()
        except Exception:  # noqa: BLE001 - the thread must survive any error
            self.counts.crashes += 1
            _LOG.exception("a step of the scheduling loop ended with an error")

    def _pod_of(self, key: str) -> PodInfo | None:
        pending = self._engine.queue.pending(key)
        return self._cache.pod(key) if pending is None else pending.queued.pod

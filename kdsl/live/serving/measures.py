"""Feeds the metrics of a running scheduler, including the sizes of its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kdsl import __version__
from kdsl.app import Scheduler
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.hooks.specs import QueuedPod
from kdsl.live.http.client import Sent
from kdsl.live.serving.decision_log import DecisionLog
from kdsl.live.writing.write_counts import Write
from kdsl.obs.client_metrics import ClientMetrics, ComparisonMetrics, LeaderMetrics, ReloadMetrics
from kdsl.obs.kdsl_families import KDSL
from kdsl.obs.metrics import SchedulerMetrics
from kdsl.obs.registry import Registry
from kdsl.obs.scheduler_families import CLIENT, SCHEDULER, SLIS

MAX_UNDER_WAY: Final = 50_000
"""The most pods whose binding is measured at once; the oldest are dropped."""
_SECOND: Final = 1e9


class _UnderWay(Struct, frozen=True):
    """A pod with a node that is not bound yet; times in seconds of the stopwatch, `queued_at` in ns."""

    popped_at: float
    chosen_at: float
    queued_at: int
    attempts: int


class Measures:
    """The instruments of one process. Methods about decisions are for the scheduling thread."""

    def __init__(
        self,
        host: str,
        log: DecisionLog,
        now: Callable[[], int],
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`now` is the clock of the queue, in nanoseconds."""
        self.registry = Registry({**SCHEDULER, **CLIENT, **KDSL}.values(), is_process_shown=True)
        self.registry.numbers("kdsl_build_info").set(1, (__version__,))
        self.slis = Registry(SLIS.values())
        self.decisions = SchedulerMetrics(self.registry)
        self.client = ClientMetrics(self.registry, host, time.monotonic)
        self.reloads = ReloadMetrics(self.registry)
        self.comparisons = ComparisonMetrics(self.registry)
        self.outbox: dict[str, int] = {}
        self._log, self._now, self._stopwatch = log, now, stopwatch
        self._under_way: dict[str, _UnderWay] = {}

    def leader(self, lease: str) -> LeaderMetrics:
        """Return the observer of the lease."""
        return LeaderMetrics(self.registry, lease)

    def adopt(self, made: Scheduler) -> None:
        """Use the metrics of these rules from now on."""
        self.decisions.adopt(made.tables, made.rules.digest)

    # ---- the scheduling thread ---------------------------------------------------------------------------

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Count an attempt and its seconds."""
        self._log.record(decision)
        self.decisions.record(decision)
        self.decisions.decided(decision, seconds)
        if decision.outcome in (Outcome.BINDING, Outcome.WAITING):
            now = self._stopwatch()
            if len(self._under_way) >= MAX_UNDER_WAY:
                del self._under_way[next(iter(self._under_way))]
            self._under_way[decision.pod] = _UnderWay(now - seconds, now, queued.queued_at, queued.attempts)

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Count the end of a pod that had a node."""
        self._log.record(decision)
        self.decisions.record(decision)
        if decision.outcome is Outcome.BINDING:
            return
        begun = self._under_way.pop(decision.pod, None)
        if begun is None:
            return
        now = self._stopwatch()
        if decision.outcome is Outcome.PLACED:
            queued = (self._now() - begun.queued_at) / _SECOND
            since_popped, binding = now - begun.popped_at, now - begun.chosen_at
            self.decisions.bound(decision.profile, begun.attempts, since_popped, queued, binding)
            self.decisions.phase("Bind", decision.profile, "Success", binding)
        else:
            self.decisions.failed(decision.profile, now - begun.popped_at)

    # ---- the event loop ----------------------------------------------------------------------------------

    def sent(self, sent: Sent) -> None:
        """Count a request (a client's observer)."""
        client = self.client
        client.answered(sent.verb, sent.code, sent.seconds, sent.sent, sent.received)
        if sent.waited:
            client.limited(sent.verb, sent.waited)
        if sent.repeats:
            client.retried(sent.verb, sent.code)

    def event_dropped(self, reason: str) -> None:
        """Count an event that is not recorded (an observer of writes)."""
        self.client.event_dropped(reason)

    def queue(self, write: Write, length: int) -> None:
        """Set the number of waiting writes of a kind."""
        self.outbox[write.value] = length

    def preempted(self, is_done: bool, seconds: float) -> None:
        """Count a preemption."""
        self.client.preempted(is_done, seconds)

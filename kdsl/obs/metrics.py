"""Metrics of a running scheduler, with one method for each observation.

`SchedulerMetrics` is for the scheduling thread and a sink of decisions; `ClientMetrics` is for the thread of
API requests (`client_metrics.py`). Both write to one `Registry`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kdsl.cycle.decision import Decision, Outcome
from kdsl.hooks.status import Code
from kdsl.hooks.table import HookTable
from kdsl.obs.evaluations import Evaluations
from kdsl.obs.registry import Registry
from kdsl.obs.state import SchedulerState

MAX_UNDER_WAY: Final = 50_000
"""The most pods between their counted decision and their end; the oldest are dropped."""
MOST_ATTEMPTS: Final = 15
"""Pods with more attempts share a label, as in kube-scheduler."""

_UNFINISHED: Final = frozenset(("waiting", "binding"))
_UNDECIDED: Final = frozenset((Outcome.GATED, Outcome.SKIPPED))


class SchedulerMetrics:
    """Counts decisions and their results. For the scheduling thread."""

    def __init__(self, registry: Registry) -> None:
        numbers, histogram = registry.numbers, registry.histogram
        self._decisions = numbers("kdsl_decisions_total")
        self._attempts = numbers("scheduler_schedule_attempts_total")
        self._preemptions = numbers("scheduler_preemption_attempts_total")
        self._victims = histogram("scheduler_preemption_victims")
        self._algorithm = histogram("scheduler_scheduling_algorithm_duration_seconds")
        self._durations = histogram("scheduler_scheduling_attempt_duration_seconds")
        self._points = histogram("scheduler_framework_extension_point_duration_seconds")
        self._tries = histogram("scheduler_pod_scheduling_attempts")
        self._sli = histogram("scheduler_pod_scheduling_sli_duration_seconds")
        self._to_bound = histogram("kdsl_decision_to_bound_seconds")
        self._permits = histogram("scheduler_permit_wait_duration_seconds")
        self._rules = numbers("kdsl_rules_info")
        self._evaluations = Evaluations(
            numbers("scheduler_plugin_evaluation_total"),
            numbers("kdsl_rule_evaluations_total"),
            numbers("kdsl_rule_rejections_total"),
            numbers("kdsl_rule_errors_total"),
        )
        self._under_way: dict[str, None] = {}
        self._schedulers: dict[str, str] = {}
        registry.before_scrape.append(self._evaluations.work_out)

    def adopt(self, tables: Iterable[HookTable], digest: str) -> None:
        """Count for these profiles, of a rule set with this digest, from now on."""
        tables = tuple(tables)
        # Dashboards identify a profile by the name of its scheduler, as in kube-scheduler.
        self._schedulers = {table.profile: table.scheduler for table in tables}
        self._evaluations.adopt(tables)
        self._rules.replace({(digest,): 1})

    def _scheduler(self, profile: str) -> str:
        return self._schedulers.get(profile, profile)

    def record(self, decision: Decision) -> None:
        """Count a decision (a sink of the engine): once when it is made, again when its binding has ended."""
        outcome, profile = decision.outcome, decision.profile
        if decision.pod in self._under_way:
            del self._under_way[decision.pod]
            if outcome in _UNFINISHED:
                self._note_under_way(decision.pod)
                return
        elif outcome not in _UNDECIDED:
            self._evaluations.record(decision)
            if outcome in _UNFINISHED:
                self._note_under_way(decision.pod)
                return
        self._decisions.add((outcome.value, profile))
        if outcome is Outcome.UNSCHEDULABLE:
            self._attempts.add((self._scheduler(profile), "unschedulable"))
        elif outcome is Outcome.PLACED:
            self._attempts.add((self._scheduler(profile), "scheduled"))
        elif outcome is Outcome.ERROR:
            self._attempts.add((self._scheduler(profile), "error"))
        if decision.postfilter is not None:
            self._preemptions.add()
            if decision.victims:
                self._victims.observe(len(decision.victims))

    def _note_under_way(self, pod: str) -> None:
        if len(self._under_way) >= MAX_UNDER_WAY:
            del self._under_way[next(iter(self._under_way))]
        self._under_way[pod] = None

    def decided(self, decision: Decision, seconds: float) -> None:
        """Add the time of a decision, from the pop to the assumption."""
        if decision.outcome in _UNDECIDED:
            return
        self._algorithm.observe(seconds)
        if decision.outcome is Outcome.UNSCHEDULABLE or decision.outcome is Outcome.ERROR:
            result = "unschedulable" if decision.outcome is Outcome.UNSCHEDULABLE else "error"
            self._durations.observe(seconds, (self._scheduler(decision.profile), result))

    def bound(
        self, profile: str, attempts: int, since_popped: float, since_queued: float, binding: float
    ) -> None:
        """Count a confirmed binding: seconds since the pod was popped, since it first entered the queue, and
        since its node was chosen.
        """
        self._durations.observe(since_popped, (self._scheduler(profile), "scheduled"))
        self._tries.observe(attempts)
        label = str(attempts) if attempts < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"
        self._sli.observe(since_queued, (label,))
        self._to_bound.observe(binding)

    def failed(self, profile: str, since_popped: float) -> None:
        """Count a failed binding: seconds since the pod was popped."""
        self._durations.observe(since_popped, (self._scheduler(profile), "error"))

    def phase(self, point: str, profile: str, status: str, seconds: float) -> None:
        """Add the time of an extension point, in kube-scheduler's words: `Bind`, `Success`."""
        self._points.observe(seconds, (point, self._scheduler(profile), status))

    def permitted(self, result: Code, nanoseconds: int) -> None:
        """Add the time that a pod waited on Permit, by result (a listener of `WaitingPods`)."""
        self._permits.observe(nanoseconds / 1e9, (result.label,))


class StateMetrics:
    """Shows the last sizes that the scheduling thread reported."""

    def __init__(self, registry: Registry) -> None:
        numbers = registry.numbers
        self._pending = numbers("scheduler_pending_pods")
        self._unschedulable = numbers("scheduler_unschedulable_pods")
        self._incoming = numbers("scheduler_queue_incoming_pods_total")
        self._in_flight = numbers("scheduler_inflight_events")
        self._flushed = numbers("scheduler_pod_scheduled_after_flush_total")
        self._sizes = numbers("scheduler_cache_size")
        self._work = numbers("scheduler_goroutines")
        self._inbox = numbers("kdsl_inbox_depth")
        self._replaced = numbers("kdsl_inbox_replaced_total")
        self._crashes = numbers("kdsl_loop_errors_total")
        self._outbox = numbers("kdsl_outbox_depth")
        self._bindings = numbers("kdsl_bindings_inflight")
        self._foreign = numbers("kdsl_foreign_binds_total")
        self._stale = numbers("kdsl_state_is_stale")

    def show(self, state: SchedulerState) -> None:
        """Show a state from now on."""
        queue = state.queue
        self._pending.replace({(part,): size for part, size in queue.sizes.items()})
        self._unschedulable.replace(dict(queue.rejected.items()))
        self._incoming.replace({(event, part): count for (part, event), count in queue.incoming.items()})
        self._in_flight.set(queue.in_flight, ("PodPopped",))
        self._flushed.set(queue.placed_after_flush)
        sizes = {"nodes": state.nodes, "pods": state.pods, "assumed_pods": state.assumed_pods}
        self._sizes.replace({(kind,): size for kind, size in sizes.items()})
        self._work.set(state.bindings, ("binding",))
        self._inbox.set(state.inbox)
        self._replaced.set(state.replaced_changes)
        self._crashes.set(state.loop_errors)
        self._outbox.replace({(kind,): size for kind, size in state.outbox.items()})
        self._bindings.set(state.bindings)
        self._foreign.set(state.foreign_binds)
        self._stale.set(0)

    def is_stale(self) -> None:
        """Note that the scheduling thread did not answer: the shown state is older."""
        self._stale.set(1)

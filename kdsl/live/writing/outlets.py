"""Passes the results of a decision to the writers of status, events and evictions, without waiting.

`reporter` makes the texts, the writers send them; this module only distributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Condition, Decision, Outcome
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing.conditions import StatusWish
from kdsl.live.writing.events import Event
from kdsl.live.writing.evictions import Eviction, PlannedPreemption
from kdsl.live.writing.known import KnownObjects
from kdsl.live.writing.reporter import Reporter


class WritesStatus(Protocol):
    """Writes the status of pods, such as `kdsl.live.writing.status_writer.StatusWriter`."""

    def submit(self, pod: LivePod, wish: StatusWish) -> bool: ...

    def forget(self, uid: str) -> None: ...

    def forget_all(self) -> None: ...


class RecordsEvents(Protocol):
    """Records events, such as `kdsl.live.writing.recorder.EventRecorder`."""

    def record(self, event: Event) -> bool: ...


class Evicts(Protocol):
    """Evicts victims, such as `kdsl.live.writing.evictions.Evictions`."""

    def submit(self, preemption: PlannedPreemption) -> bool: ...


class Silence:
    """A writer that writes nothing, for a process that only advises another scheduler."""

    def submit(self, subject: object, wish: object = None) -> bool:
        """Write nothing."""
        return True

    def record(self, event: Event) -> bool:
        """Record nothing."""
        return True

    def forget(self, uid: str) -> None:
        """Have nothing to forget."""

    def forget_all(self) -> None:
        """Have nothing to forget."""


class Outlets:
    """Writes decisions to the cluster. For the scheduling thread; no method waits."""

    def __init__(
        self,
        known: KnownObjects,
        reporter: Reporter,
        status: WritesStatus,
        events: RecordsEvents,
        evictions: Evicts,
    ) -> None:
        self._known, self._reporter = known, reporter
        self._status, self._events, self._evictions = status, events, evictions

    def publish(self, decision: Decision, pod: PodInfo, nominated: str) -> None:
        """Write the results of a decision; `nominated` is the pod's nominated node, empty for none."""
        live = self._live(pod)
        match decision.outcome:
            case Outcome.PLACED:
                self._status.forget(pod.uid)
                self._events.record(self._reporter.placed(live, decision.node, pod.scheduler_name))
            case Outcome.WAITING:
                self.announce(pod, decision.node)
            case _:
                report = self._reporter.failed(decision, live, nominated)
                if report is not None:
                    self._events.record(report.event)
                    if report.wish is not None:
                        self._status.submit(live, report.wish)

    def prepare(self, pod: PodInfo, node: str, takes_long: bool) -> None:
        """Prepare the binding of a pod: drop pending status writes, which would be wrong once it is bound."""
        self._status.forget(pod.uid)
        if takes_long:
            self.announce(pod, node)

    def stand_down(self) -> None:
        """Drop pending status writes: another instance decides about pods now."""
        self._status.forget_all()

    def announce(self, pod: PodInfo, node: str) -> None:
        """Write the node into the pod's status before a binding that takes long."""
        self._status.submit(self._live(pod), StatusWish(nominated=node))

    def publish_stopped(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        """Record an event for a victim that was not bound yet, and is sent back."""
        event = self._reporter.preempted(
            self._live(victim), preemptor, node, preemptor.scheduler_name, in_memory=True
        )
        self._events.record(event)

    def make_room(
        self,
        preemptor: PodInfo,
        decision: Decision,
        victims: Sequence[tuple[PodInfo, Condition]],
    ) -> bool:
        """Evict victims; return False if too many preemptions wait.

        A pod that was nominated to the node before finds out at its own next attempt, as in kube-scheduler.
        """
        return self._evictions.submit(
            PlannedPreemption(
                preemptor,
                decision.nominated,
                preemptor.scheduler_name,
                tuple(Eviction(self._live(pod), condition) for pod, condition in victims),
            )
        )

    def _live(self, pod: PodInfo) -> LivePod:
        """Return the last known state of a pod from the server."""
        known = self._known.pod(pod.key)
        return known if known is not None and known.info.uid == pod.uid else LivePod(pod, "")

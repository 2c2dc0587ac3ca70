"""What the scheduling thread hands out after a decision, without waiting: status, events, victims.

Words are the reporter's, writing is the business of the writers; here is only who gets what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Condition, Decision, Outcome
from kdsl.live.changes import LivePod
from kdsl.live.conditions import StatusWish
from kdsl.live.events import Event
from kdsl.live.evictions import Eviction, Preemption
from kdsl.live.known import KnownObjects
from kdsl.live.reporter import Reporter


class WritesStatus(Protocol):
    """Writes pods' status. `kdsl.live.status_writer.StatusWriter` does."""

    def submit(self, pod: LivePod, wish: StatusWish) -> bool: ...

    def forget(self, uid: str) -> None: ...

    def forget_all(self) -> None: ...


class RecordsEvents(Protocol):
    """Records events. `kdsl.live.recorder.Recorder` does."""

    def record(self, event: Event) -> bool: ...


class Evicts(Protocol):
    """Removes victims. `kdsl.live.evictions.Evictions` does."""

    def submit(self, preemption: Preemption) -> bool: ...


class Silence:
    """Takes the place of a writer where nothing is to be said: another scheduler says it."""

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
    """Tells the cluster of decisions. For the scheduling thread; nothing here waits."""

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

    def tell(self, decision: Decision, pod: PodInfo, nominated: str) -> None:
        """Tell of a decision; `nominated` is the node that the pod is promised now, empty for none."""
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
        """Make ready for the binding of a pod: what earlier attempts wish for would be wrong once it is
        bound.
        """
        self._status.forget(pod.uid)
        if takes_long:
            self.announce(pod, node)

    def stand_down(self) -> None:
        """Say nothing more about pods: somebody else decides them now."""
        self._status.forget_all()

    def announce(self, pod: PodInfo, node: str) -> None:
        """Say in the pod's status which node it will be bound to, since that will take a while."""
        self._status.submit(self._live(pod), StatusWish(nominated=node))

    def tell_stopped(self, victim: PodInfo, preemptor: PodInfo, node: str) -> None:
        """Tell of a victim that was not bound yet, and is sent back."""
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
        """Have victims removed; False where too many preemptions wait.

        Who was promised the node before learns of it at its own next attempt, as in kube-scheduler.
        """
        return self._evictions.submit(
            Preemption(
                preemptor,
                decision.nominated,
                preemptor.scheduler_name,
                tuple(Eviction(self._live(pod), condition) for pod, condition in victims),
            )
        )

    def _live(self, pod: PodInfo) -> LivePod:
        """Return what the server said of a pod last."""
        known = self._known.pod(pod.key)
        return known if known is not None and known.info.uid == pod.uid else LivePod(pod, "")

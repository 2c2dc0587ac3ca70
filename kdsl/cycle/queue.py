"""The scheduling queue: the order of pods, the pods that wait, and the events that wake them.

A pod is in one of five places. `active`: it is next, by its profile's order. `backoff`: it failed and waits,
from one second to ten by default; pods whose attempt had an error wait in a separate heap. `unschedulable`:
rules rejected it, and it sleeps until an event may have removed the cause. `gated`: it is not let in. In
flight: its attempt is running. A pod that is being bound asynchronously is in none of them: it comes back, or
is done.

There is no thread and no timer: due pods are found when the queue is asked for the next pod. All times are
those of the clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kdsl.base.clock import Clock
from kdsl.base.events import Action, Resource
from kdsl.base.times import SECOND
from kdsl.cluster.api.objects import Namespace
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent, pending_pod_event
from kdsl.cycle.event_labels import event_label
from kdsl.cycle.flight import InFlight
from kdsl.cycle.gate import ROOM_IS_BEING_MADE, GatedPod, refusal_of
from kdsl.cycle.heaps import Heaps
from kdsl.cycle.pending import PendingPod, Rejectors
from kdsl.cycle.routing import Routes
from kdsl.cycle.sleepers import Sleepers
from kdsl.cycle.waking import FORCE_ACTIVATE, Urgency, urgency_of
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Backoff, QueuedPod

FLUSH_EVERY = 30 * SECOND
MAX_ASLEEP = 5 * 60 * SECOND
"""The interval of the search for pods that no event has woken, and their longest sleep. It is a safety net:
every pod that is placed because of it is counted, since an event is missing in that case.
"""

_COMPLETING = frozenset((Resource.NAMESPACE, Resource.DEVICE_CLASS))
"""The resources whose facts the catalog adds to pods: a change of them changes pods that wait."""

POD_ADD = "UnschedulablePodAdd"
FAILURE = "ScheduleAttemptFailure"
WITHDRAWN = "AssignedPodDelete"
TIMEOUT = ClusterEvent(Resource.ANY, Action.ALL, label="UnschedulableTimeout")
RULES_CHANGED = ClusterEvent(Resource.ANY, Action.ALL, label="RulesChanged")


class SchedulingQueue:
    """The pods that wait for an attempt, and those in one."""

    def __init__(
        self,
        routes: Routes,
        clock: Clock,
        is_promised: Callable[[str], bool] = lambda node: False,
        complete: Callable[[PodInfo], PodInfo] = lambda pod: pod,
    ) -> None:
        """`is_promised` returns whether a node has nominated pods that are not there yet; `complete` returns
        a pod with the catalog's facts of its namespace added.
        """
        self._complete = complete
        self._routes = routes
        self._clock = clock
        self._is_promised = is_promised
        self._sequence = 0
        self._pods: dict[str, PendingPod] = {}
        self._active = Heaps()
        self._backoff = Heaps()
        self._error_backoff = Heaps()
        # Pods that rules rejected, and gated pods.
        self._asleep = Sleepers()
        self._in_flight = InFlight()
        self._leaving: set[str] = set()
        self._held: set[str] = set()
        # The pod that is being reserved, and the events about it meanwhile.
        self._reserving: PodInfo | None = None
        self._postponed: list[ClusterEvent] = []
        self._next_flush = clock.now() + FLUSH_EVERY
        # Without it sleeping pods wait for an event however long: a simulation knows that none is missing.
        self.wakes_sleepers = True
        self.placed_after_flush = 0
        # Whether a hint has failed about any pod: then `take_faults` may have something.
        self.has_faults = False
        # Number of pods that entered a part of the queue, by the part and the cause.
        self.incoming: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        """Return the number of pods that could be taken now or later without another event."""
        return len(self._active) + len(self._backoff) + len(self._error_backoff)

    @property
    def has_next(self) -> bool:
        """Return whether `pop` has a pod to return, whatever the time is."""
        return bool(len(self._active) or len(self._backoff))

    # ---- contents ----------------------------------------------------------------------------------------

    @property
    def gated(self) -> dict[str, GatedPod]:
        """Return the gated pods by key."""
        return {
            key: GatedPod(self._pods[key].queued, refusal)
            for key in self._asleep
            if (refusal := self._pods[key].refusal) is not None
        }

    @property
    def unschedulable(self) -> dict[str, Rejectors]:
        """Return the pods that sleep until an event wakes them by key, with their rejectors."""
        return {key: self._pods[key].rejectors for key in self._asleep if not self._pods[key].refusal}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the number of pods in each part."""
        gated = sum(1 for key in self._asleep if self._pods[key].refusal is not None)
        return {
            "active": len(self._active),
            "backoff": len(self._backoff) + len(self._error_backoff),
            "unschedulable": len(self._asleep) - gated,
            "gated": gated,
        }

    @property
    def in_flight(self) -> int:
        """Return the number of pods in an attempt."""
        return len(self._in_flight)

    def rejected(self) -> Counter[tuple[str, str]]:
        """Count the sleeping pods, gated ones included, by rejecting plugin and profile."""
        return self._asleep.rejected()

    def pending(self, key: str) -> PendingPod | None:
        """Return the record of the pod `namespace/name`."""
        return self._pods.get(key)

    def take_faults(self, key: str) -> tuple[Fault, ...]:
        """Return the errors of hints that woke the pod `namespace/name` since the last call."""
        pending = self._pods.get(key)
        return () if pending is None else pending.take_faults()

    def place_of(self, key: str) -> str:
        """Return where a pod is: `active`, `backoff`, `unschedulable`, `gated`, `in flight`, `leaving` (it is
        being bound), or an empty string.
        """
        if key in self._active:
            return "active"
        if key in self._backoff or key in self._error_backoff:
            return "backoff"
        if key in self._asleep:
            return "gated" if self._pods[key].refusal else "unschedulable"
        if key in self._leaving:
            return "leaving"
        return "in flight" if key in self._in_flight else ""

    # ---- pods come, change and go ------------------------------------------------------------------------

    def add(self, pod: PodInfo) -> GatedPod | None:
        """Queue a pod, or gate it and return the reason. A failing hook gates the pod as well."""
        pod, key = self._complete(pod), pod.key
        if key in self._pods:
            self.delete(key)
        pending = self._pods[key] = PendingPod(key, self._queued(pod, 0))
        self._enter(self._active, pending, POD_ADD)
        return None if pending.refusal is None else GatedPod(pending.queued, pending.refusal)

    def update(self, pod: PodInfo) -> None:
        """Apply the new version of a waiting pod; a new pod is queued."""
        pending = self._pods.get(pod.key)
        if pending is None:
            self.add(pod)
            return
        pod, before = self._complete(pod), pending.queued.pod
        self._replace(pending, pod)
        event = pending_pod_event(before, pod)
        if event is None:
            return
        if self._routes.table_of(before) is not self._routes.table_of(pod):
            # Another profile decides it now: the rules that rejected it may not be among its rules.
            event = replace(event, resource=Resource.ANY, label=event_label(event))
        self.notice(event)

    def _replace(self, pending: PendingPod, pod: PodInfo) -> None:
        """Keep another version of a pod, which may change its place in the order and what it waits for."""
        pending.queued = pending.queued.with_pod(pod)
        if pending.key in self._asleep:
            self._asleep.add(pending, self._routes.table_of(pod))
        for heaps in (self._active, self._backoff, self._error_backoff):
            if heaps.remove(pending.key):
                self._enter(heaps, pending)

    def delete(self, key: str) -> None:
        """Forget the pod `namespace/name`, wherever it is."""
        if self._pods.pop(key, None) is None:
            return
        self._held.discard(key)
        # INVARIANT: a pod is in one place.
        if key in self._leaving:
            self._leaving.remove(key)
        elif key in self._in_flight:
            self._in_flight.end(key)
        elif not self._asleep.remove(key):
            for heaps in (self._active, self._backoff, self._error_backoff):
                heaps.remove(key)

    # ---- attempts ----------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Take the next pod, None where there is none.

        Where no pod is active, a pod in backoff after a rejection is taken early, but none after an error.
        """
        self.flush()
        key = self._active.pop()
        if key is None:
            key = self._backoff.pop()
            if key is None:
                return None
            self.incoming["active", "PopFromBackoffQ"] += 1
        self._in_flight.start(key)
        pending = self._pods[key]
        pending.queued = queued = pending.queued.tried(1)
        return queued

    def put_back(self, queued: QueuedPod) -> None:
        """Undo a `pop` before the attempt began. Events since then do not matter: the next attempt includes
        them.
        """
        key = queued.pod.key
        pending = self._pods.get(key)
        self._in_flight.end(key)
        if pending is not None:
            pending.queued = pending.queued.tried(-1)
            self._enter(self._active, pending)

    def done(self, key: str, *, is_placed: bool = True) -> None:
        """End the last attempt of a pod: it is placed, or no work is left for it."""
        pending = self._pods.get(key)
        if pending is not None and pending.is_flushed and is_placed:
            self.placed_after_flush += 1
        self.delete(key)

    def leave(self, key: str) -> None:
        """Release a pod that is being bound: later events cannot remove the cause of a failure."""
        if key in self._pods and key in self._in_flight:
            self._in_flight.end(key)
            self._leaving.add(key)

    def requeue(self, key: str, rejectors: Rejectors, promised: str = "") -> None:
        """End a failed attempt. The pod sleeps until an event, perhaps one during the attempt, may have cured
        its rejectors; without rejectors it is tried again after its backoff. A pod that is nominated for the
        node `promised` also wakes when its last victim has left.
        """
        pending = self._pods.get(key)
        if pending is None or not (key in self._in_flight or key in self._leaving):
            return
        self._leaving.discard(key)
        events = self._in_flight.end(key)
        pending.fail(rejectors, promised)
        pending.queued = self._queued(pending.queued.pod, pending.queued.attempts)
        if not rejectors:
            self._wake(pending, Urgency.AFTER_BACKOFF, FAILURE)
            return
        table = self._routes.table_of(pending.queued.pod)
        self._asleep.add(pending, table)
        urgency = max((urgency_of(pending, table, event) for event in events), default=Urgency.NONE)
        if urgency is not Urgency.NONE:
            self._wake(pending, urgency, FAILURE)
        else:
            self.incoming["unschedulable", FAILURE] += 1

    # ---- events ------------------------------------------------------------------------------------------

    def listens(self, key: str) -> bool:
        """Return whether an event of the placed pod `namespace/name` could wake a pod, at once or later.

        Its own events wake no pod.
        """
        return bool(self._asleep) or self._in_flight.holds_others(key)

    def notice(self, event: ClusterEvent) -> None:
        """Wake the pods whose rejection the event may have cured. Events about a pod that is being reserved
        are postponed.
        """
        reserving = self._reserving
        if reserving is not None and event.pod is not None and event.pod.key == reserving.key:
            self._postponed.append(event)
            return
        if event.resource in _COMPLETING:
            self._complete_all(event)
        if event.node_after is not None and self._is_promised(event.node_after.name):
            # Nominated pods on the node may have caused a rejection, so the node's former state does not
            # matter.
            event = replace(event, node_before=None)
        self._in_flight.record(event)
        for pending, urgency in self._asleep.woken(event):
            self._wake(pending, urgency, event_label(event))

    def _complete_all(self, event: ClusterEvent) -> None:
        """Add the facts of the catalog again to the pods to which an event may matter: all of them, or those
        of the changed namespace.
        """
        changed = event.before if event.after is None else event.after
        namespace = changed.metadata.name if isinstance(changed, Namespace) else None
        for pending in self._pods.values():
            known = pending.queued.pod
            if namespace is None or known.namespace == namespace:
                pod = self._complete(known)
                if pod is not known:
                    self._replace(pending, pod)

    def postpone(self, pod: PodInfo) -> None:
        """Postpone the events about a pod that is being reserved until `resume`."""
        self._reserving = pod

    def resume(self, *, drops: bool) -> None:
        """Take the postponed events, or drop them."""
        self._reserving = None
        if self._postponed:
            events, self._postponed = self._postponed, []
            for event in () if drops else events:
                self.notice(event)

    def activate(self, keys: Iterable[str]) -> None:
        """Let pods be tried at once; a pod in flight is tried again at once if it fails."""
        for key in keys:
            pending = self._pods.get(key)
            if key in self._in_flight:
                event = ClusterEvent(Resource.ANY, Action.ALL, target=key, label=FORCE_ACTIVATE)
                self._in_flight.record(event)
            elif pending is not None and not self._is_tried(key):
                self._backoff.remove(key)
                self._error_backoff.remove(key)
                self._wake(pending, Urgency.AT_ONCE, FORCE_ACTIVATE)

    def try_elsewhere(self, key: str) -> None:
        """Wake a sleeping pod whose nomination another pod has ended: it waits for room that is not made for
        it any more.
        """
        pending = self._pods.get(key)
        if pending is not None and key in self._asleep and pending.refusal is None:
            self._wake(pending, Urgency.AFTER_BACKOFF, WITHDRAWN)

    def back_off(self, key: str) -> None:
        """Let a pod be tried after its backoff, as after an error: not sooner, even if no other pod waits."""
        pending = self._pods.get(key)
        if pending is not None and not self._is_tried(key):
            self._backoff.remove(key)
            self._enter(self._error_backoff, pending, FAILURE)

    def _is_tried(self, key: str) -> bool:
        """Return whether a pod is in an attempt, is being bound, or comes next."""
        return key in self._in_flight or key in self._leaving or key in self._active

    def flush(self) -> None:
        """Activate the pods whose backoff is over, and wake the pods that slept for more than five
        minutes.
        """
        now = self._clock.now()
        for heaps in (self._error_backoff, self._backoff):
            while (due := heaps.due) is not None and due < now // SECOND:
                key = heaps.pop()
                assert key is not None
                self._enter(self._active, self._pods[key], "BackoffComplete")
        if now < self._next_flush or not self.wakes_sleepers:
            return
        self._next_flush += ((now - self._next_flush) // FLUSH_EVERY + 1) * FLUSH_EVERY
        for key in tuple(self._asleep):
            pending = self._pods[key]
            if now - pending.queued.queued_at > MAX_ASLEEP:
                is_gated = pending.refusal is not None
                self._wake(pending, Urgency.AFTER_BACKOFF, TIMEOUT.label)
                if not is_gated:
                    pending.is_flushed = True

    def hold(self, key: str) -> None:
        """Keep the pod `namespace/name` from being tried until `let_go`: room is being made for it."""
        pending = self._pods.get(key)
        if pending is None:
            return
        self._held.add(key)
        for heaps in (self._active, self._backoff, self._error_backoff):
            if heaps.remove(key):
                self._enter(heaps, pending)

    def let_go(self, key: str) -> None:
        """End a hold; a pod that was woken meanwhile is tried after its backoff."""
        self._held.discard(key)
        pending = self._pods.get(key)
        if pending is not None and pending.refusal is ROOM_IS_BEING_MADE:
            self._wake(pending, Urgency.AFTER_BACKOFF, "RoomIsMade")

    @property
    def next_due(self) -> int | None:
        """Return the earliest time in nanoseconds at which `flush` has work; None where no pod waits."""
        dues = [heaps.due for heaps in (self._backoff, self._error_backoff)]
        times = [(due + 1) * SECOND for due in dues if due is not None]
        sleepers_due = (self._next_flush,) if self._asleep and self.wakes_sleepers else ()
        return min([*times, *sleepers_due], default=None)

    def reroute(self) -> None:
        """Move the waiting pods to their places after a change of profiles.

        Rejected and gated pods are tried again, also those that are rejected later by former rules: the rule
        that rejected them may be gone.
        """
        self._in_flight.record(RULES_CHANGED)
        asleep = tuple(self._asleep)
        for heaps in (self._active, self._backoff, self._error_backoff):
            for key in heaps.clear():
                self._enter(heaps, self._pods[key])
        for key in asleep:
            self._wake(self._pods[key], Urgency.AFTER_BACKOFF, RULES_CHANGED.label)

    # ---- moving ------------------------------------------------------------------------------------------

    def _wake(self, pending: PendingPod, urgency: Urgency, cause: str) -> None:
        """Move a sleeping pod to the active or backoff part, unless it is gated.

        `cause` is the cause in the words of kube-scheduler's metrics.
        """
        self.has_faults = self.has_faults or bool(pending.faults)
        heaps = self._active
        if urgency is not Urgency.AT_ONCE and self._due(pending) >= self._clock.now() // SECOND:
            heaps = self._backoff if pending.rejectors else self._error_backoff
        self._enter(heaps, pending, cause)

    def _enter(self, heaps: Heaps, pending: PendingPod, cause: str = "") -> None:
        """Put a pod into a heap if its profile lets it in, else to sleep behind its gate.

        Without a `cause` it only changes its place, and is not counted as incoming.
        """
        pod = pending.queued.pod
        table = self._routes.table_of(pod)
        self._asleep.remove(pending.key)
        try:
            if pending.key in self._held:
                pending.refusal = ROOM_IS_BEING_MADE
            else:
                pending.refusal = None if table is None else refusal_of(table, pod)
            if pending.refusal is None:
                due = 0 if heaps is self._active else self._due(pending)
                heaps.push(table, pending.key, pending.queued, due)
                if cause:
                    self.incoming["active" if heaps is self._active else "backoff", cause] += 1
                return
        except PluginError as error:
            pending.refusal = error.status
        if cause:
            self.incoming["unschedulable", cause] += 1
        self._asleep.add(pending, table)

    def _due(self, pending: PendingPod) -> int:
        """Return the last second of the pod's backoff; it is in the past where the pod need not wait."""
        table = self._routes.table_of(pending.queued.pod)
        wait = (table.backoff if table else Backoff()).after(pending.failures)
        return (pending.queued.queued_at + wait) // SECOND if wait else -1

    def _queued(self, pod: PodInfo, attempts: int) -> QueuedPod:
        self._sequence += 1
        return QueuedPod(pod, self._clock.now(), self._sequence - 1, attempts)

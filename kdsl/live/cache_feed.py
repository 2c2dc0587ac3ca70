"""Changes of the API server to the cache and the queue: who counts on which node, and who waits for one.

Runs on the scheduling thread only. What a change does is a table of `spec/live.md` 2.1: a pod on a node goes
to the cache, whoever put it there; one without a node, if it asks for a profile of ours, to the queue. What
wakes sleeping pods are the events that the cache tells the queue of; a change that changes nothing tells of
none, so a list after an outage wakes nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import Engine
from kdsl.live.changes import Change, LiveNode, LivePod, Verb
from kdsl.live.known import KnownObjects

_ASSUMED_KINDS: Final = (PersistentVolume, PersistentVolumeClaim)
"""What the scheduler shows as it is going to be: older news about it does not count."""


@dataclass(slots=True)
class FeedCounts:
    """What the feed has met: numbers for metrics.

    `foreign_binds` are pods of ours that somebody else bound while we wanted to: a second scheduler of the
    same name. `replaced` are objects that were made anew under their name unseen, `moved` pods that changed
    their node, which the API does not allow.
    """

    changes: int = 0
    foreign_binds: int = 0
    replaced: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class FeedListeners:
    """Who is told of what the feed meets, on the scheduling thread.

    `gated` of the decision about a pod that is not let into the queue, `pod_over` of the uid of a pod that is
    bound or gone, `claim_changed` of a PersistentVolumeClaim `namespace/name`.
    """

    gated: Callable[[Decision, PodInfo], None] = lambda decision, pod: None
    pod_over: Callable[[str], None] = lambda uid: None
    claim_changed: Callable[[str], None] = lambda claim: None


NO_LISTENERS: Final = FeedListeners()


class CacheFeed:
    """Takes changes to the cache and the engine of one scheduler."""

    def __init__(
        self,
        cache: ClusterCache,
        engine: Engine,
        known: KnownObjects,
        leads: Callable[[], bool] = lambda: True,
        listeners: FeedListeners = NO_LISTENERS,
    ) -> None:
        self._cache, self._engine, self._known = cache, engine, known
        self._leads, self._listeners = leads, listeners
        self.counts = FeedCounts()

    def take(self, change: Change) -> None:
        """Take in one change."""
        self.counts.changes += 1
        thing = change.object
        if isinstance(thing, LivePod):
            self._take_pod(change, thing)
        elif isinstance(thing, LiveNode):
            self._take_node(change, thing)
        elif thing is not None:
            self._take_object(change, thing)

    # ---- pods --------------------------------------------------------------------------------------------

    def _take_pod(self, change: Change, live: LivePod) -> None:
        pod = live.info
        is_gone = change.verb is Verb.DROP or pod.is_finished
        if is_gone:
            self._drop_pod(pod, change.uid or pod.uid)
            return
        self._drop_predecessor(pod)
        self._known.put_pod(change.key, live, change.raw)
        if pod.node_name:
            self._put_assigned(pod)
        elif self._engine.takes(pod):
            self._put_pending(pod)
        else:
            self._forget_pod(pod, pod.uid)  # it may have been ours before the rules changed

    def _drop_predecessor(self, pod: PodInfo) -> None:
        """Drop another pod that had this one's name: its end was missed."""
        for before in (self._cache.pod(pod.key), self._pending(pod.key)):
            if before is not None and before.uid != pod.uid:
                self.counts.replaced += 1
                self._drop_pod(before, before.uid)
                return  # the cache and the queue know the same pod, if both know one

    def _put_assigned(self, pod: PodInfo) -> None:
        """Count a pod on its node; it confirms the assumed one, wherever that was."""
        key = pod.key
        if key in self._engine.waiting:
            # Nobody has been asked to bind it yet, so somebody else has: there is nothing to wait for.
            self._note_foreign_bind()
            self._engine.give_up(pod)
        before, is_assumed = self._cache.pod(key), self._cache.is_assumed(key)
        is_ours = is_assumed and before is not None and before.node_name == pod.node_name
        if self._engine.being_bound(key) is None:
            if self._pending(key) is not None:
                if not is_ours:
                    self._note_foreign_bind()
                self._engine.leave_queue(pod)
                self._listeners.pod_over(pod.uid)
        elif not is_ours and is_assumed:
            # What is under way ends by itself: the API server refuses it.
            self._note_foreign_bind()
        if before is not None and not is_assumed and before.node_name != pod.node_name:
            self.counts.moved += 1
        self._cache.add_pod(pod)

    def _note_foreign_bind(self) -> None:
        # Who does not lead sees all pods bound by the one who does.
        if self._leads():
            self.counts.foreign_binds += 1

    def _put_pending(self, pod: PodInfo) -> None:
        """Queue a pod, or take in what it has become."""
        key = pod.key
        if self._cache.is_assumed(key):
            if pod.is_terminating:
                self._engine.give_up(pod)
            elif self._pending(key) is not None:
                self._engine.queue.update(pod)  # if it is not bound after all, it is tried as it is now
            return
        if self._cache.pod(key) is not None:
            # It had a node, and has none any more: impossible, but what is said last counts.
            self.counts.moved += 1
            self._cache.remove_pod(key)
        before = self._pending(key)
        if before is None:
            decision = self._engine.enqueue(pod)
            if decision is not None:
                self._listeners.gated(decision, pod)
            return
        self._engine.renominate(before, pod)
        self._engine.queue.update(pod)

    def reroute(self) -> None:
        """Queue the pods that are ours by the rules of now, and were not before."""
        for live in self._known.pending():
            pod = live.info
            is_known = self._pending(pod.key) is not None or self._cache.is_assumed(pod.key)
            if not is_known and self._engine.takes(pod):
                self._put_pending(pod)

    def _drop_pod(self, pod: PodInfo, uid: str) -> None:
        """Forget a pod that is gone, if it is the one that is known under its name."""
        known = self._known.pod(pod.key)
        if known is None or known.info.uid == uid:
            self._known.drop_pod(pod.key)
        self._listeners.pod_over(uid)
        self._forget_pod(pod, uid)

    def _forget_pod(self, pod: PodInfo, uid: str) -> None:
        """Take a pod out of cache and queue, if it is the one that is known there under its name."""
        key = pod.key
        pending, placed = self._pending(key), self._cache.pod(key)
        if pending is not None and pending.uid == uid:
            self._engine.give_up(pending)
        elif placed is not None and placed.uid == uid and self._cache.is_assumed(key):
            self._engine.give_up(placed)
        placed = self._cache.pod(key)
        if placed is not None and placed.uid == uid:
            self._cache.remove_pod(key)

    def _pending(self, key: str) -> PodInfo | None:
        pending = self._engine.queue.pending(key)
        return None if pending is None else pending.queued.pod

    # ---- nodes and the rest ------------------------------------------------------------------------------

    def _take_node(self, change: Change, live: LiveNode) -> None:
        name = live.facts.name
        known = self._known.node(name)
        if change.verb is Verb.DROP:
            if known is None or known.uid == live.uid:
                self._known.drop_node(name)
                self._cache.remove_node(name)
            return
        if known is not None and known.uid != live.uid:
            self.counts.replaced += 1
            self._cache.remove_node(name)
        self._known.put_node(live, change.raw)
        self._cache.add_node(live.facts)

    def _take_object(self, change: Change, thing: CatalogObject) -> None:
        kind = thing.KIND
        if isinstance(thing, PersistentVolumeClaim):
            self._listeners.claim_changed(change.key)
        if change.verb is Verb.DROP:
            self._known.forget_version(kind, change.key)
            self._cache.remove(kind, change.key)
            return
        if isinstance(thing, _ASSUMED_KINDS) and not self._known.is_newer(kind, change.key, change.version):
            return
        self._cache.put(thing)

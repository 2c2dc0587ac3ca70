"""Applies changes of the API server to the cache and the queue.

Runs on the scheduling thread only. The table in `spec/live.md` 2.1 defines each change. A pod with a node
goes to the cache, whichever scheduler placed it; a pod without one goes to the queue, if it selects a profile
of this scheduler. The cache sends the events that wake waiting pods. A change without effect sends none, so a
list after an outage wakes no pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import Engine
from kdsl.live.watching.changes import LiveNode, LivePod, ObjectChange, Verb
from kdsl.live.writing.known import KnownObjects

_ASSUMED_KINDS: Final = (PersistentVolume, PersistentVolumeClaim)
"""Annotations that the scheduler has assumed; older changes of them are ignored."""


@dataclass(slots=True)
class FeedCounts:
    """Counts of the feed, for metrics.

    `foreign_binds` are pods that another scheduler of the same name bound meanwhile. `replaced` are objects
    deleted and created again between two events, `moved` pods that changed their node, which the API does not
    allow.
    """

    changes: int = 0
    foreign_binds: int = 0
    replaced: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class FeedListeners:
    """Callbacks of the feed, on the scheduling thread.

    `gated` gets the decision about a pod that PreEnqueue holds back, `pod_over` the uid of a pod that is
    bound or gone, `claim_changed` the `namespace/name` of a PersistentVolumeClaim or ResourceClaim. The key
    and version of a ResourceClaim go to `device_claim_changed` too, with the claim, None if it is gone.
    """

    gated: Callable[[Decision, PodInfo], None] = lambda decision, pod: None
    pod_over: Callable[[str], None] = lambda uid: None
    claim_changed: Callable[[str], None] = lambda claim: None
    device_claim_changed: Callable[[str, str, ResourceClaim | None], None] = lambda key, version, claim: None


NO_LISTENERS: Final = FeedListeners()


class CacheFeed:
    """Applies changes to the cache and the engine of one scheduler."""

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

    def take(self, change: ObjectChange) -> None:
        """Apply a change."""
        self.counts.changes += 1
        thing = change.object
        if isinstance(thing, LivePod):
            self._take_pod(change, thing)
        elif isinstance(thing, LiveNode):
            self._take_node(change, thing)
        elif thing is not None:
            self._take_object(change, thing)

    # ---- pods --------------------------------------------------------------------------------------------

    def _take_pod(self, change: ObjectChange, live: LivePod) -> None:
        pod = live.info
        is_gone = change.verb is Verb.DROP or pod.is_finished
        if is_gone:
            self._drop_pod(pod, change.uid or pod.uid)
            return
        self._drop_predecessor(pod)
        self._known.put_pod(change.key, live, change.raw)
        if pod.node_name:
            self._put_assigned(pod)
        elif self._engine.takes(pod) or self._cache.is_assumed(pod.key):
            # A pod being bound keeps its room, even if the rules have no profile for it any more.
            self._put_pending(pod)
        else:
            self._forget_pod(pod, pod.uid)  # the pod may have selected our profile before the rules changed

    def _drop_predecessor(self, pod: PodInfo) -> None:
        """Drop a pod of the same name and another uid: its deletion was missed."""
        known = self._known.pod(pod.key)
        # A pod that was skipped is in neither cache nor queue.
        last = None if known is None else known.info
        for before in (self._cache.pod(pod.key), self._pending(pod.key), last):
            if before is not None and before.uid != pod.uid:
                self.counts.replaced += 1
                self._drop_pod(before, before.uid)
                return  # if several of them have a pod of this name, it is the same one

    def _put_assigned(self, pod: PodInfo) -> None:
        """Count a pod on its node; this confirms an assumed pod, even on another node."""
        key = pod.key
        if key in self._engine.waiting:
            # No binding was requested yet, so another scheduler bound the pod: stop waiting for permits.
            self._note_foreign_bind()
            self._engine.give_up(pod)
        before, is_assumed = self._cache.pod(key), self._cache.is_assumed(key)
        is_ours = is_assumed and before is not None and before.node_name == pod.node_name
        if self._engine.being_bound(key) is None:
            is_pending = self._pending(key) is not None
            if is_pending and not is_ours:
                self._note_foreign_bind()
            # One that was skipped has left the queue, but may still be nominated.
            self._engine.leave_queue(pod)
            if is_pending:
                self._listeners.pod_over(pod.uid)
        elif not is_ours and is_assumed:
            # Our binding under way ends by itself: the API server refuses it.
            self._note_foreign_bind()
        if before is not None and not is_assumed and before.node_name != pod.node_name:
            self.counts.moved += 1
        self._cache.add_pod(pod)

    def _note_foreign_bind(self) -> None:
        # A follower sees the leader's bindings.
        if self._leads():
            self.counts.foreign_binds += 1

    def _put_pending(self, pod: PodInfo) -> None:
        """Queue a pod, or update a queued one."""
        key = pod.key
        if self._cache.is_assumed(key):
            if pod.is_terminating:
                self._engine.give_up(pod)
            elif self._pending(key) is not None:
                self._engine.queue.update(pod)  # after a failed binding the next attempt uses this version
            return
        if self._cache.pod(key) is not None:
            # A pod that loses its node is impossible, but the latest version counts.
            self.counts.moved += 1
            self._cache.remove_pod(key)
        before = self._pending(key)
        if before is None:
            decision = self._engine.enqueue(pod)
            if decision is not None:
                self._listeners.gated(decision, pod)
            return
        self._engine.nominator.renominate(before, pod)
        self._engine.queue.update(pod)

    def reroute(self) -> None:
        """Queue the pods that select one of our profiles only since the rules changed."""
        for live in self._known.pending():
            pod = live.info
            is_known = self._pending(pod.key) is not None or self._cache.is_assumed(pod.key)
            if not is_known and self._engine.takes(pod):
                self._put_pending(pod)

    def _drop_pod(self, pod: PodInfo, uid: str) -> None:
        """Forget a pod that is gone, if the known pod of its name has this uid."""
        known = self._known.pod(pod.key)
        if known is None or known.info.uid == uid:
            self._known.drop_pod(pod.key)
        self._listeners.pod_over(uid)
        self._forget_pod(pod, uid)

    def _forget_pod(self, pod: PodInfo, uid: str) -> None:
        """Remove a pod from cache and queue, if the pod there has this uid."""
        key = pod.key
        pending, placed = self._pending(key), self._cache.pod(key)
        if pending is not None and pending.uid == uid:
            self._engine.give_up(pending)
        elif placed is not None and placed.uid == uid and self._cache.is_assumed(key):
            self._engine.give_up(placed)
        placed = self._cache.pod(key)
        if placed is not None and placed.uid == uid:
            self._cache.remove_pod(key)
        # A pod that was skipped, because it was being deleted, has left the queue with its nomination.
        self._engine.nominator.delete(pod)

    def _pending(self, key: str) -> PodInfo | None:
        pending = self._engine.queue.pending(key)
        return None if pending is None else pending.queued.pod

    # ---- nodes and the rest ------------------------------------------------------------------------------

    def _take_node(self, change: ObjectChange, live: LiveNode) -> None:
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

    def _take_object(self, change: ObjectChange, thing: CatalogObject) -> None:
        kind = thing.KIND
        if isinstance(thing, PersistentVolumeClaim | ResourceClaim):
            self._listeners.claim_changed(change.key)
        if isinstance(thing, ResourceClaim):
            is_gone = change.verb is Verb.DROP
            self._listeners.device_claim_changed(change.key, change.version, None if is_gone else thing)
        if change.verb is Verb.DROP:
            self._known.forget_version(kind, change.key)
            self._cache.remove(kind, change.key)
            return
        if isinstance(thing, _ASSUMED_KINDS) and not self._known.is_newer(kind, change.key, change.version):
            return
        self._cache.put(thing)

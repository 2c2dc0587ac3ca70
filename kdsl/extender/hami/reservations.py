"""Cards that filter assigned to unbound pods: they count on their node until the pod is bound or gone.

In the cache such a pod is assumed. Annotations of the pods store the reservations, so `apply` restores them
after a restart. For the scheduling thread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.live.watching.changes import LivePod, ObjectChange, Verb
from kdsl.plan.devices.plugin import CHOSEN_AT, CHOSEN_NODE

_MOST_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Reservation:
    """A pod with the annotations that filter wrote, and its node."""

    pod: PodInfo
    node: str


class Reservations:
    """The reservations of pods by `namespace/name`. `records` are the annotations that list cards."""

    def __init__(self, cache: ClusterCache, records: Collection[str]) -> None:
        self._cache, self._records = cache, frozenset(records)
        self._given: dict[str, Reservation] = {}
        # Cancelled reservations that the pod's annotations may still list: by pod, its uid and the second of
        # the reservation.
        self._void: dict[str, tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._given)

    def of(self, key: str) -> Reservation | None:
        """Return the reservation of an unbound pod."""
        return self._given.get(key)

    def follow(self, records: Collection[str]) -> None:
        """Read other annotations from now on, after a change of the rules."""
        self._records = frozenset(records)

    def apply(self, change: ObjectChange) -> None:
        """Apply a change of a pod, before or after the cache does; `settle` updates the cache."""
        pod = change.object.info if isinstance(change.object, LivePod) else None
        if change.resource != "pods":
            return
        if change.verb is Verb.DROP or pod is None or pod.node_name or pod.is_finished:
            uid = change.uid or (pod.uid if pod is not None else "")
            self._drop(change.key, uid)
            return
        given_at = _given_at(pod)
        if given_at is None or not self._records & pod.annotations.keys():
            return
        known = self._given.get(change.key)
        if known is not None and known.pod.uid == pod.uid and given_at <= (_given_at(known.pod) or 0):
            return  # our own reservation, or an older one
        uid, since = self._void.get(change.key, ("", 0))
        if uid == pod.uid and given_at <= since:
            return
        self._let_go(change.key)
        self._given[change.key] = Reservation(pod, pod.annotations[CHOSEN_NODE])

    def settle(self) -> None:
        """Assume the reserved pods in the cache, and forget the reservations of bound ones."""
        bound = []
        for key, given in self._given.items():
            known = self._cache.pod(key)
            if known is not None and not self._cache.is_assumed(key):
                bound.append(key)
            elif known is None and self._cache.has_node(given.node):
                self._cache.assume(given.pod, given.node)
        for key in bound:
            del self._given[key]

    def give(self, pod: PodInfo, node: str) -> None:
        """Reserve the cards in the pod's annotations; the pod counts on the node from now on."""
        self._let_go(pod.key)
        self._void.pop(pod.key, None)
        self._given[pod.key] = Reservation(pod, node)
        self._cache.assume(pod, node)

    def take_back(self, pod: PodInfo) -> None:
        """Cancel a pod's reservation, although its annotations may still list it."""
        given = self._given.get(pod.key)
        stamps = [_given_at(each) for each in (pod, given.pod if given is not None else pod)]
        self._let_go(pod.key)
        since = max((stamp for stamp in stamps if stamp is not None), default=None)
        if since is not None:
            self._void[pod.key] = pod.uid, since

    def _let_go(self, key: str) -> None:
        if self._given.pop(key, None) is not None:
            self._cache.forget(key)

    def _drop(self, key: str, uid: str) -> None:
        """Forget a pod that is bound or gone; the cache gets the change itself."""
        given = self._given.get(key)
        if given is not None and given.pod.uid in ("", uid):
            del self._given[key]
        if self._void.get(key, ("", 0))[0] == uid:
            del self._void[key]


def _given_at(pod: PodInfo) -> int | None:
    """Return the Unix second in which filter chose the pod's node; None if none is chosen."""
    if not pod.annotations.get(CHOSEN_NODE):
        return None
    stamp = pod.annotations.get(CHOSEN_AT, "")
    return int(stamp) if stamp.isascii() and stamp.isdecimal() and len(stamp) < _MOST_DIGITS else 0

"""Cards that filter has given to unbound pods: they count on their node until the pod is gone or bound.

The cache shows such a pod as assumed. All of it is in annotations of pods, so it is there again after a
restart: see `hear`. Everything here belongs to the scheduling thread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.live.changes import Change, LivePod, Verb
from kdsl.plan.devices.plugin import CHOSEN_AT, CHOSEN_NODE

_MOST_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Reservation:
    """A pod with the annotations that filter gave it, and its node."""

    pod: PodInfo
    node: str


class Reservations:
    """The reservations of pods by `namespace/name`. `records` are the annotations that list cards."""

    def __init__(self, cache: ClusterCache, records: Collection[str]) -> None:
        self._cache, self._records = cache, frozenset(records)
        self._given: dict[str, Reservation] = {}
        # Reservations taken back while the pod's annotations still have them: by pod, its uid and the second
        # in which the reservation was made.
        self._void: dict[str, tuple[str, int]] = {}

    def __len__(self) -> int:
        return len(self._given)

    def of(self, key: str) -> Reservation | None:
        """Return what a pod that is not bound has been given."""
        return self._given.get(key)

    def follow(self, records: Collection[str]) -> None:
        """Look at other annotations from now on: the rules have changed."""
        self._records = frozenset(records)

    def hear(self, change: Change) -> None:
        """Take in a change of a pod, before or after the cache does; `settle` makes the cache agree."""
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
            return  # our own, or news of before it
        uid, since = self._void.get(change.key, ("", 0))
        if uid == pod.uid and given_at <= since:
            return
        self._let_go(change.key)
        self._given[change.key] = Reservation(pod, pod.annotations[CHOSEN_NODE])

    def settle(self) -> None:
        """Have the cache show what is given, and forget what is bound."""
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
        """Count the pod, with the annotations that it has here, on a node from now on."""
        self._let_go(pod.key)
        self._void.pop(pod.key, None)
        self._given[pod.key] = Reservation(pod, node)
        self._cache.assume(pod, node)

    def take_back(self, pod: PodInfo) -> None:
        """Take back what a pod was given, though its annotations may still say so."""
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
        """Forget a pod that is gone or bound; the cache hears of it by itself."""
        given = self._given.get(key)
        if given is not None and given.pod.uid in ("", uid):
            del self._given[key]
        if self._void.get(key, ("", 0))[0] == uid:
            del self._void[key]


def _given_at(pod: PodInfo) -> int | None:
    """Return the second in which filter chose the pod's node; None where nobody chose one."""
    if not pod.annotations.get(CHOSEN_NODE):
        return None
    stamp = pod.annotations.get(CHOSEN_AT, "")
    return int(stamp) if stamp.isascii() and stamp.isdecimal() and len(stamp) < _MOST_DIGITS else 0

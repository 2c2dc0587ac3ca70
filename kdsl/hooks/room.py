"""Events that let a pod make room by preemption: hints are asked about nodes without the pods that may go.

A hint compares a node before and after an event. A pod that does not fit on the node either way may still fit
there without its possible victims, after the event and not before: a pod that it may not evict has left, or
the node has grown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final

from kdsl.base.by_identity import ByIdentity, ByTuple
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.wake import HintAnswer, QueueingHint, Wake, Wakes

Groups = list[tuple[list[int], tuple[PodInfo, ...]]]
"""Groups of pods, each with the places of its pods."""
_MAX_ASKED: Final = 1 << 17
"""The most pods of all questions whose groups are kept."""

FindEvictable = Callable[[PodInfo, Sequence[PodInfo]], Sequence[PodInfo]]


@dataclass(frozen=True, slots=True)
class Evictable:
    """The pods that a pod may evict: `find` returns those among the pods of a node.

    `signature` returns a value that is equal for pods that may evict the same ones; None: no two pods may.
    """

    find: FindEvictable
    signature: Callable[[PodInfo], Hashable] | None = None


class _Thinning:
    """Events whose nodes lack the pods that a pod may evict; those of the latest event are kept."""

    def __init__(self, evictable: Evictable) -> None:
        self.signature = evictable.signature
        self._find = evictable.find
        self._known = ByIdentity[ClusterEvent, dict[Hashable, ClusterEvent]](lambda event: {}, 1)
        self._groups = ByTuple[PodInfo, Groups](self._grouped, _MAX_ASKED)

    def thinned(self, pod: PodInfo, event: ClusterEvent) -> ClusterEvent:
        """Return the event without the pods that `pod` may evict; the same one if there are none, or if
        nothing changes beside them.
        """
        known = self._known.of(event)
        kind = None if self.signature is None else self.signature(pod)
        found = None if kind is None else known.get(kind)
        if found is None:
            before, after = self._without(pod, event.node_before), self._without(pod, event.node_after)
            is_same = before is event.node_before and after is event.node_after
            is_same = is_same or _are_equal(before, after)
            found = event if is_same else replace(event, node_before=before, node_after=after)
            if kind is not None:
                known[kind] = found
        return found

    def groups_of(self, pods: tuple[PodInfo, ...]) -> Groups:
        """Return the pods in groups that may evict the same ones."""
        return self._groups.of(pods)

    def _grouped(self, pods: tuple[PodInfo, ...]) -> Groups:
        if self.signature is None:
            return [([place], (pod,)) for place, pod in enumerate(pods)]
        places: dict[Hashable, list[int]] = {}
        for place, kind in enumerate(map(self.signature, pods)):
            # Of pods without a signature no two may evict the same ones.
            places.setdefault((place,) if kind is None else (0, kind), []).append(place)
        return [(each, tuple([pods[place] for place in each])) for each in places.values()]

    def _without(self, pod: PodInfo, node: NodeInfo | None) -> NodeInfo | None:
        if node is None or not node.pods:
            return node
        gone = {victim.key for victim in self._find(pod, node.pods)}
        if not gone:
            return node
        return NodeInfo.of(node.facts, (other for other in node.pods if other.key not in gone))


def _are_equal(before: NodeInfo | None, after: NodeInfo | None) -> bool:
    """Return whether a node has the same facts and pods as before: a possible victim has left or come."""
    if before is None or after is None or before.facts is not after.facts:
        return False
    return len(before.pods) == len(after.pods) and all(map(is_, before.pods, after.pods))


def room_wakes(wakes: Wakes, evictable: Evictable) -> Wakes:
    """Return the events that may let pods make room, by the plugin that forbids it: beside `wakes`, for they
    differ only where a pod may evict others.
    """
    thinning = _Thinning(evictable)
    return {name: tuple(_beside(wake, thinning) for wake in several) for name, several in wakes.items()}


def _beside(wake: Wake, thinning: _Thinning) -> Wake:
    hint, signature = wake.hint, wake.signature
    if hint is None:
        return wake  # the event alone decides

    def thinned_hint(pod: PodInfo, event: ClusterEvent, ask: QueueingHint = hint) -> HintAnswer:
        thinned = thinning.thinned(pod, event)
        return thinned is not event and ask(pod, thinned)

    def joined(pod: PodInfo) -> Hashable:
        values = (signature and signature(pod), thinning.signature and thinning.signature(pod))
        return None if None in values else values

    def thinned_hints(pods: tuple[PodInfo, ...], event: ClusterEvent) -> Sequence[HintAnswer]:
        found: list[HintAnswer] = [False] * len(pods)
        for places, some in thinning.groups_of(pods):
            thinned = thinning.thinned(some[0], event)
            if thinned is not event:
                for place, answer in zip(places, wake.are_worth_it(some, thinned), strict=True):
                    found[place] = answer
        return found

    return Wake(wake.patterns, thinned_hint, joined, wake.hints and thinned_hints, wake.plugin)

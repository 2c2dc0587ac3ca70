"""Pods in order: one heap for each profile, since only keys of one profile can be compared."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any, Final

from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.table import HookTable

Place = tuple[str, str]
"""The profile and scheduler that order a pod; pods that no profile takes have a heap for each scheduler."""

Entry = tuple[int, Any, int, int, QueuedPod, str]
"""When it is due, sort key, sequence, number of the push, pod, its `namespace/name`.

A pod that was removed and pushed again leaves an entry that is the same but for the number of the push: it is
what keeps pods from being compared.
"""


class Heaps:
    """Pods by profile: those that are due first come first, then by the profile's order.

    Between profiles the pod with the higher priority comes first, then the one that was queued first. A pod
    that was removed stays in its heap until it comes to the top.
    """

    def __init__(self) -> None:
        self._heaps: dict[Place, list[Entry]] = {}
        self._alive: dict[str, QueuedPod] = {}
        self._pushes = itertools.count()

    def __len__(self) -> int:
        return len(self._alive)

    def __contains__(self, key: str) -> bool:
        return key in self._alive

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._alive.values())

    def push(self, table: HookTable | None, key: str, queued: QueuedPod, due: int = 0) -> None:
        """Add the pod `namespace/name`; raises PluginError where its profile has no sort key for it, or one
        that cannot be compared.
        """
        place = ("", queued.pod.scheduler_name) if table is None else (table.profile, table.scheduler)
        heap = self._heaps.get(place)
        if heap is None:
            heap = self._heaps[place] = []
        plugin, sort = _PRIORITY_SORT if table is None else table.queue_sort or _PRIORITY_SORT
        entry = None
        try:
            entry = (due, sort(queued), queued.sequence, next(self._pushes), queued, key)
            heapq.heappush(heap, entry)
        except Exception as cause:
            # A key that cannot be compared with the others leaves its entry in the heap.
            heap[:] = [other for other in heap if other is not entry]
            heapq.heapify(heap)
            raise PluginError.raised(plugin, "queue_sort", cause) from cause
        self._alive[key] = queued

    @property
    def due(self) -> int | None:
        """When the pod is due that is first of all, None where there is none."""
        # Most often nobody waits, and this is asked before every attempt.
        heap = self._first() if self._alive else None
        return None if heap is None else heap[0][0]

    def pop(self) -> QueuedPod | None:
        """Take the pod that is first of all."""
        heap = self._first()
        return None if heap is None else self._alive.pop(heapq.heappop(heap)[5])

    def _first(self) -> list[Entry] | None:
        """Return the heap on top of which is the pod that is first of all, None where there is none."""
        first: list[Entry] | None = None
        for heap in self._heaps.values():
            while heap and self._alive.get(heap[0][5]) is not heap[0][4]:
                heapq.heappop(heap)
            if heap and (first is None or _turn(heap[0]) < _turn(first[0])):
                first = heap
        return first

    def clear(self) -> tuple[QueuedPod, ...]:
        """Take all pods out, in the order in which they came, with all that is known of how they compare."""
        pods = tuple(self._alive.values())
        self._heaps.clear()
        self._alive.clear()
        return pods

    def remove(self, key: str) -> QueuedPod | None:
        """Take the pod `namespace/name` out, wherever it stands."""
        return self._alive.pop(key, None)


def _turn(entry: Entry) -> tuple[int, tuple[int, int, int]]:
    """Return what orders pods of different profiles."""
    return entry[0], age(entry[4])


def age(queued: QueuedPod) -> tuple[int, int, int]:
    """Return the key of kube-scheduler's PrioritySort."""
    return -queued.pod.priority, queued.queued_at, queued.sequence


_PRIORITY_SORT: Final = ("PrioritySort", age)
"""What orders pods where their profile does not say."""

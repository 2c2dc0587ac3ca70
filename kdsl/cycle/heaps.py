"""Pods in order: one line for each profile, since only keys of one profile can be compared."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Any, Final

from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.table import HookTable

Place = tuple[str, str]
"""The profile and scheduler that order a pod; pods that no profile takes have a line for each scheduler."""

Entry = tuple[int, Any, int, int, QueuedPod, str]
"""When it is due, sort key, sequence, number of the push, pod, its `namespace/name`.

A pod that was removed and pushed again leaves an entry that is the same but for the number of the push: it is
what keeps pods from being compared.
"""


class _Line:
    """Entries that can be compared, the smallest first.

    Most pods come in their order: those are a sorted run, which costs one comparison at its end, however long
    it is. Only the others are in a heap.
    """

    __slots__ = ("_heap", "_run")

    def __init__(self) -> None:
        self._run: deque[Entry] = deque()
        self._heap: list[Entry] = []

    def push(self, entry: Entry) -> None:
        """Add an entry; what its comparison raises leaves the line as it was."""
        if not self._run or self._run[-1] < entry:
            self._run.append(entry)
            return
        try:
            heapq.heappush(self._heap, entry)
        except Exception:
            self._heap = [other for other in self._heap if other is not entry]
            heapq.heapify(self._heap)
            raise

    def first(self) -> Entry | None:
        """Return the smallest entry, None where there is none."""
        if not self._heap:
            return self._run[0] if self._run else None
        return min(self._run[0], self._heap[0]) if self._run else self._heap[0]

    def drop(self, first: Entry) -> None:
        """Take out the smallest entry, which is `first`."""
        if self._run and self._run[0] is first:
            self._run.popleft()
        else:
            heapq.heappop(self._heap)


class Heaps:
    """Pods by profile: those that are due first come first, then by the profile's order.

    Between profiles the pod with the higher priority comes first, then the one that was queued first. A pod
    that was removed stays in its line until it comes to the top.
    """

    def __init__(self) -> None:
        self._lines: dict[Place, _Line] = {}
        self._alive: dict[str, QueuedPod] = {}
        self._pushes = itertools.count()

    def __len__(self) -> int:
        return len(self._alive)

    def __contains__(self, key: str) -> bool:
        return key in self._alive

    def push(self, table: HookTable | None, key: str, queued: QueuedPod, due: int = 0) -> None:
        """Add the pod `namespace/name`; raises PluginError where its profile has no sort key for it, or one
        that cannot be compared.
        """
        place = ("", queued.pod.scheduler_name) if table is None else (table.profile, table.scheduler)
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = _Line()
        plugin, sort = _PRIORITY_SORT if table is None else table.queue_sort or _PRIORITY_SORT
        try:
            line.push((due, sort(queued), queued.sequence, next(self._pushes), queued, key))
        except Exception as cause:
            raise PluginError.raised(plugin, "queue_sort", cause) from cause
        self._alive[key] = queued

    @property
    def due(self) -> int | None:
        """When the pod is due that is first of all, None where there is none."""
        # Most often nobody waits, and this is asked before every attempt.
        found = self._first() if self._alive else None
        return None if found is None else found[1][0]

    def pop(self) -> str | None:
        """Take the pod that is first of all and return its `namespace/name`, None where there is none."""
        found = self._first()
        if found is None:
            return None
        line, entry = found
        line.drop(entry)
        del self._alive[entry[5]]
        return entry[5]

    def _first(self) -> tuple[_Line, Entry] | None:
        """Return the entry of the pod that is first of all and its line, None where there is none."""
        found: tuple[_Line, Entry] | None = None
        for line in self._lines.values():
            while (entry := line.first()) is not None and self._alive.get(entry[5]) is not entry[4]:
                line.drop(entry)
            if entry is not None and (found is None or _turn(entry) < _turn(found[1])):
                found = line, entry
        return found

    def clear(self) -> tuple[str, ...]:
        """Take all pods out, with all that is known of how they compare, and return them by `namespace/name`
        in the order in which they came.
        """
        keys = tuple(self._alive)
        self._lines.clear()
        self._alive.clear()
        return keys

    def remove(self, key: str) -> bool:
        """Take the pod `namespace/name` out, wherever it stands; False where it is not here."""
        return self._alive.pop(key, None) is not None


def _turn(entry: Entry) -> tuple[int, tuple[int, int, int]]:
    """Return what orders pods of different profiles."""
    return entry[0], age(entry[4])


def age(queued: QueuedPod) -> tuple[int, int, int]:
    """Return the key of kube-scheduler's PrioritySort."""
    return -queued.pod.priority, queued.queued_at, queued.sequence


_PRIORITY_SORT: Final = ("PrioritySort", age)
"""What orders pods where their profile does not say."""

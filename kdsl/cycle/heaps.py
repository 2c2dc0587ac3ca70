"""Pods in order: one line for each profile, since only sort keys of one profile can be compared."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from typing import Any, Final

from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.table import HookTable

Place = tuple[str, str]
"""The profile and scheduler that order a pod; pods that no profile takes have one line for each scheduler."""

Entry = tuple[int, Any, int, int, QueuedPod, str]
"""Due time, sort key, sequence, number of the push, pod, its `namespace/name`.

If a pod is removed and pushed again, its old entry differs only in the number of the push, which keeps the
comparison from reaching the pods.
"""


class _Line:
    """Comparable entries, the smallest first.

    Most pods arrive in sorted order: they form a sorted run, and appending costs one comparison, however long
    the run is. Only the others are in a heap.
    """

    __slots__ = ("_heap", "_run")

    def __init__(self) -> None:
        self._run: deque[Entry] = deque()
        self._heap: list[Entry] = []

    def push(self, entry: Entry) -> None:
        """Add an entry; if its comparison raises, the line stays unchanged."""
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
        """Return the smallest entry, None if the line is empty."""
        if not self._heap:
            return self._run[0] if self._run else None
        return min(self._run[0], self._heap[0]) if self._run else self._heap[0]

    def drop(self, first: Entry) -> None:
        """Remove the smallest entry, which is `first`."""
        if self._run and self._run[0] is first:
            self._run.popleft()
        else:
            heapq.heappop(self._heap)


class Heaps:
    """Pods by profile: by due time, then by the profile's order.

    Between profiles the pod with the higher priority comes first, then the one that was queued first. A
    removed pod stays in its line until it comes to the top.
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
        """Add the pod `namespace/name`. Raises PluginError where its profile returns no sort key for it, or
        one that cannot be compared.
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
        """Return the due time of the first pod, None where there is none."""
        # Most often no pod waits, and every attempt calls this first.
        found = self._first() if self._alive else None
        return None if found is None else found[1][0]

    def pop(self) -> str | None:
        """Remove the first pod and return its `namespace/name`, None where there is none."""
        found = self._first()
        if found is None:
            return None
        line, entry = found
        line.drop(entry)
        del self._alive[entry[5]]
        return entry[5]

    def _first(self) -> tuple[_Line, Entry] | None:
        """Return the entry of the first pod and its line, None where there is none."""
        found: tuple[_Line, Entry] | None = None
        for line in self._lines.values():
            while (entry := line.first()) is not None and self._alive.get(entry[5]) is not entry[4]:
                line.drop(entry)
            if entry is not None and (found is None or _turn(entry) < _turn(found[1])):
                found = line, entry
        return found

    def clear(self) -> tuple[str, ...]:
        """Remove all pods and all their sort keys; return them by `namespace/name` in the order in which they
        came.
        """
        keys = tuple(self._alive)
        self._lines.clear()
        self._alive.clear()
        return keys

    def remove(self, key: str) -> bool:
        """Remove the pod `namespace/name`, wherever it stands; return False where it is not here."""
        return self._alive.pop(key, None) is not None


def _turn(entry: Entry) -> tuple[int, tuple[int, int, int]]:
    """Return the key that orders pods of different profiles."""
    return entry[0], age(entry[4])


def age(queued: QueuedPod) -> tuple[int, int, int]:
    """Return the key of kube-scheduler's PrioritySort."""
    return -queued.pod.priority, queued.queued_at, queued.sequence


_PRIORITY_SORT: Final = ("PrioritySort", age)
"""The order of pods where their profile defines none."""

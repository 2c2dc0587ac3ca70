"""The scheduling queue: which pod is next, and which pods are not let in.

Each profile orders its own pods by its `queue_sort`. Between profiles the head with the highest priority
comes first, then the one that was queued first.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

from kdsl.base.clock import Clock
from kdsl.cluster.pod import PodInfo
from kdsl.cycle.routing import Routes
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import HookTable


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that is not let into the queue, and why."""

    queued: QueuedPod
    status: Status


Entry = tuple[
    Any, int, QueuedPod
]  # sort key, sequence, pod: the sequence breaks ties, pods are never compared


class SchedulingQueue:
    """The pods waiting for an attempt: a heap for each profile, and for each scheduler that has none."""

    def __init__(self, routes: Routes, clock: Clock) -> None:
        self._routes = routes
        self._clock = clock
        self._sequence = 0
        self._heaps: dict[tuple[str, str], list[Entry]] = {}
        self.gated: dict[str, GatedPod] = {}

    def __len__(self) -> int:
        return sum(len(heap) for heap in self._heaps.values())

    def add(self, pod: PodInfo) -> GatedPod | None:
        """Queue a pod, or gate it and return why. A hook that goes wrong gates the pod as well."""
        queued = QueuedPod(pod, self._clock.now(), self._sequence)
        self._sequence += 1
        self.gated.pop(pod.key, None)
        table = self._routes.table_of(pod)
        try:
            refusal = _refusal(table, pod) if table else None
            if refusal is None:
                self._push(table, queued)
        except PluginError as error:
            refusal = error.status
        if refusal is None:
            return None
        gated = GatedPod(queued, refusal)
        self.gated[pod.key] = gated
        return gated

    def pop(self) -> QueuedPod | None:
        """Take the pod that is next, None where the queue is empty."""
        heads = [(_age(heap[0][2]), place) for place, heap in self._heaps.items() if heap]
        if not heads:
            return None
        return heapq.heappop(self._heaps[min(heads)[1]])[2]

    def _push(self, table: HookTable | None, queued: QueuedPod) -> None:
        place = (table.profile, table.scheduler) if table else ("", queued.pod.scheduler_name)
        heap = self._heaps.setdefault(place, [])
        plugin, sort = table.queue_sort if table and table.queue_sort else ("PrioritySort", _age)
        entry = None
        try:
            entry = (sort(queued), queued.sequence, queued)
            heapq.heappush(heap, entry)
        except Exception as cause:
            # A key that cannot be compared with the others leaves its entry in the heap.
            heap[:] = [other for other in heap if other is not entry]
            heapq.heapify(heap)
            raise PluginError.raised(plugin, "queue_sort", cause) from cause


def _age(queued: QueuedPod) -> tuple[int, int, int]:
    """The order of kube-scheduler's PrioritySort."""
    return -queued.pod.priority, queued.queued_at, queued.sequence


def _refusal(table: HookTable, pod: PodInfo) -> Status | None:
    for plugin, call in table.pre_enqueues:
        try:
            status = call(pod)
        except Exception as cause:
            raise PluginError.raised(plugin, "pre_enqueue", cause) from cause
        if status is not None and status.code is not Code.SUCCESS:
            return status.by(plugin)
    return None

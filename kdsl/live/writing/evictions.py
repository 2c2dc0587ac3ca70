"""Deletes the victims of a preemption, in kube-scheduler's order.

Each victim gets the condition DisruptionTarget, is deleted, and gets an event. The last victim is deleted
after all others: until then the preemptor's room does not count as made. Pods that are not bound yet are sent
back in memory by the scheduling thread, since the API server has nothing to delete.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kdsl.base.clock import Clock
from kdsl.base.times import to_seconds
from kdsl.base.visible import visible
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Condition
from kdsl.live.http.lanes import Lane
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing.api import Api
from kdsl.live.writing.conditions import StatusWish, patch_for
from kdsl.live.writing.doorbell import Crew, Doorbell
from kdsl.live.writing.outcomes import Done, Refused, Result
from kdsl.live.writing.recorder import EventRecorder
from kdsl.live.writing.reporter import Reporter
from kdsl.live.writing.retries import repeated
from kdsl.live.writing.write_counts import UNOBSERVED, Write, WriteObserver

AT_ONCE: Final = 16
"""The most victims of one preemption, and preemptions, at once."""
CAPACITY: Final = 1000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Eviction:
    """A bound pod to delete, and the condition written before."""

    pod: LivePod
    condition: Condition


@dataclass(frozen=True, slots=True)
class PlannedPreemption:
    """A preemption: the room that is made for a pod on a node.

    `scheduler` is the `schedulerName` of the preemptor. `displaced` are pods of lower priority that were
    nominated to the node: they lose the nomination.
    """

    preemptor: PodInfo
    node: str
    scheduler: str
    victims: tuple[Eviction, ...]
    displaced: tuple[LivePod, ...] = ()


@dataclass(slots=True)
class _Progress:
    """The progress of a preemption; after the first error no further victim is deleted."""

    problem: str = ""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class Evictions:
    """Carries out preemptions. `ended` is called for each on the event loop's thread, with the error if there
    was one: the preemptor must then be tried again. Nothing is deleted once `leads` returns False.
    """

    def __init__(
        self,
        api: Api,
        recorder: EventRecorder,
        reporter: Reporter,
        clock: Clock,
        ended: Callable[[PlannedPreemption, str], None],
        observer: WriteObserver = UNOBSERVED,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._api, self._recorder, self._reporter, self._leads = api, recorder, reporter, leads
        self._clock, self._ended, self._observer = clock, ended, observer
        self._lock = threading.Lock()
        self._waiting: deque[PlannedPreemption] = deque()
        self._doorbell = Doorbell(self._start_waiting)
        self._crew = Crew("evictions", AT_ONCE, self._start_waiting)

    def start(self) -> None:
        """Start, on the running event loop."""
        self._doorbell.connect()

    def submit(self, preemption: PlannedPreemption) -> bool:
        """Queue a preemption, from any thread. False if too many wait: try the preemptor again."""
        with self._lock:
            is_full = len(self._waiting) >= CAPACITY
            if not is_full:
                self._waiting.append(preemption)
            length = len(self._waiting)
        if is_full:
            return False
        self._observer.queue(Write.DELETE, length)
        self._doorbell.ring()
        return True

    @property
    def is_idle(self) -> bool:
        """Return whether no preemption waits or is under way."""
        return not self._waiting and self._crew.is_idle

    async def close(self) -> None:
        """End the work under way, and accept no more."""
        self._doorbell.disconnect()
        self._waiting.clear()
        await self._crew.close()

    def _start_waiting(self) -> None:
        while self._crew.has_room and self._waiting:
            preemption = self._waiting.popleft()
            self._observer.queue(Write.DELETE, len(self._waiting))
            self._crew.start(self._make_room(preemption))

    async def _make_room(self, preemption: PlannedPreemption) -> None:
        progress, started = _Progress(), asyncio.get_running_loop().time()
        try:
            for pod in preemption.displaced:
                await self._displace(pod)
            victims = preemption.victims
            await asyncio.gather(*(self._evict(each, preemption, progress) for each in victims[:-1]))
            for last in victims[-1:]:
                await self._evict(last, preemption, progress)
        except Exception as error:
            self._end(preemption, f"making room ended with an error: {error}", started)
            raise
        self._end(preemption, progress.problem, started)

    def _end(self, preemption: PlannedPreemption, problem: str, started: float) -> None:
        self._observer.preempted(not problem, asyncio.get_running_loop().time() - started)
        self._ended(preemption, problem)

    async def _displace(self, pod: LivePod) -> None:
        """Clear the nomination of a pod; a failure does not delay the preemption."""
        patch = patch_for(pod, StatusWish(nominated=""), "")
        if patch is None:
            return
        result = await repeated(lambda: self._api.patch_status(pod.info, patch, Lane.EVICT))
        if not isinstance(result, Done) and not _is_over(result):
            _LOG.warning("the nomination of pod %s stays: %s", visible(pod.info.key), result.text)

    async def _evict(self, eviction: Eviction, preemption: PlannedPreemption, progress: _Progress) -> None:
        pod = eviction.pod
        if pod.info.is_terminating:
            return  # the pod terminates already: wait for its room, and change nothing
        async with progress.turns:
            if not self._may_go_on(progress):
                return
            patch = patch_for(pod, StatusWish(eviction.condition), to_seconds(self._clock.now()))
            if patch is not None:
                result = await repeated(
                    lambda: self._api.patch_status(pod.info, patch, Lane.EVICT, self._leads)
                )
                if not self._goes_on(result, pod, progress):
                    return
            if not self._may_go_on(progress) or not self._goes_on(
                await self._api.delete_pod(pod.info), pod, progress
            ):
                return
        event = self._reporter.preempted(pod, preemption.preemptor, preemption.node, preemption.scheduler)
        self._recorder.record(event)

    def _may_go_on(self, progress: _Progress) -> bool:
        """Return whether another request may begin: none failed, and this instance still leads."""
        if not progress.problem and not self._leads():
            progress.problem = "this scheduler does not lead any more"
        return not progress.problem

    def _goes_on(self, result: Result[object], pod: LivePod, progress: _Progress) -> bool:
        """Return whether to continue with a victim: it exists and no request failed."""
        if isinstance(result, Done):
            return not progress.problem
        if not _is_over(result):
            problem = f"pod {visible(pod.info.key)} is not evicted: {result.text}"
            progress.problem = progress.problem or problem
            _LOG.warning("%s", problem)
        return False


def _is_over(result: Result[object]) -> bool:
    """Return whether the pod is gone, or replaced by another of its name."""
    return isinstance(result, Refused) and (result.is_gone or result.is_recreated)

"""Writes the status of pods: why they wait, and their nominated node.

The scheduling thread queues wishes and continues. Only the newest wish of a pod counts. Wishes are bounded in
number and never delay bindings.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from kdsl.base.clock import Clock
from kdsl.base.times import to_seconds
from kdsl.base.visible import visible
from kdsl.live.watching.changes import LivePod, is_older
from kdsl.live.writing.api import Api, SeenPod
from kdsl.live.writing.conditions import StatusWish, bound_patch, patch_for, whole_patch
from kdsl.live.writing.doorbell import Crew, Doorbell
from kdsl.live.writing.outcomes import Done, Lost, Refused, Result
from kdsl.live.writing.retries import repeated
from kdsl.live.writing.write_counts import UNOBSERVED, Write, WriteObserver

IN_FLIGHT: Final = 32
CAPACITY: Final = 20_000
"""The most pods with a waiting wish."""
_AWAY: Final = 1.0
"""The pause of a wish while the server is unreachable, in seconds."""
_REMEMBERED: Final = 20_000
_SETTLE: Final = 0.005
_SERVER_FAULT: Final = 500
_BOUND_FIELD: Final = "status.nominatedNodeName"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pending:
    pod: LivePod
    wish: StatusWish


@dataclass(frozen=True, slots=True)
class _Written:
    """The status written to a pod: the answer `seen` to a patch made when the watch showed `version`."""

    version: str
    seen: SeenPod

    def is_newer_than(self, pod: LivePod) -> bool:
        """Return whether the watch does not show this status yet.

        It may show a version in between, that of an earlier patch.
        """
        return self.version == pod.version or is_older(pod.version, self.seen.version)


class StatusWriter:
    """Writes wishes to the API server, those of one pod in sequence.

    `submit` and `forget` may be called from any thread, and never block.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        observer: WriteObserver = UNOBSERVED,
        *,
        in_flight: int = IN_FLIGHT,
        capacity: int = CAPACITY,
    ) -> None:
        self._api, self._clock, self._observer, self._capacity = api, clock, observer, capacity
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._running: set[str] = set()
        self._unwanted: set[str] = set()
        self._written: dict[str, _Written] = {}
        self._unsure: dict[str, None] = {}
        self._doorbell = Doorbell(self._start_waiting)
        self._crew = Crew("status writer", in_flight, self._start_waiting)

    def start(self) -> None:
        """Start writing, on the running event loop."""
        self._doorbell.connect()

    def submit(self, pod: LivePod, wish: StatusWish) -> bool:
        """Queue a wish; `pod` is the pod's state in the watch.

        Returns False if the queue is full: the pod's next attempt will submit again. Wishes for bound pods
        are ignored.
        """
        if pod.info.node_name:
            return True
        uid = pod.info.uid
        with self._lock:
            before = self._pending.get(uid)
            is_full = before is None and len(self._pending) >= self._capacity
            if not is_full:
                self._pending[uid] = _Pending(pod, wish if before is None else wish.over(before.wish))
            length = len(self._pending)
        if is_full:
            return False
        self._observer.queue(Write.STATUS, length)
        self._doorbell.ring()
        return True

    def forget(self, uid: str) -> None:
        """Drop the wishes of a pod that is bound or gone."""
        with self._lock:
            self._pending.pop(uid, None)
            self._written.pop(uid, None)
            self._unsure.pop(uid, None)
            if uid in self._running:
                self._unwanted.add(uid)

    def forget_all(self) -> None:
        """Drop all wishes: another instance leads now."""
        with self._lock:
            self._pending.clear()
            self._written.clear()
            self._unsure.clear()
            self._unwanted |= self._running

    async def settled(self, uid: str) -> None:
        """Wait until no write of a pod is under way.

        An older condition must not arrive after the binding.
        """
        while uid in self._running:
            await asyncio.sleep(_SETTLE)

    @property
    def is_idle(self) -> bool:
        """Return whether no wish waits or is under way."""
        with self._lock:
            return not self._pending and not self._running

    async def close(self) -> None:
        """End the work under way, and accept no more."""
        self._doorbell.disconnect()
        with self._lock:
            self._pending.clear()
        await self._crew.close()

    def _start_waiting(self) -> None:
        """Start writing for as many pods as there is room for."""
        while self._crew.has_room:
            pending = self._take()
            if pending is None:
                return
            self._crew.start(self._write(pending))

    def _take(self) -> _Pending | None:
        """Return the oldest wish among pods without a write under way."""
        with self._lock:
            uid = next((uid for uid in self._pending if uid not in self._running), None)
            if uid is None:
                return None
            self._running.add(uid)
            pending = self._pending.pop(uid)
            length = len(self._pending)
        self._observer.queue(Write.STATUS, length)
        return pending

    async def _write(self, pending: _Pending) -> None:
        try:
            await self._grant(pending)
        finally:
            with self._lock:
                self._running.discard(pending.pod.info.uid)
                self._unwanted.discard(pending.pod.info.uid)

    async def _grant(self, pending: _Pending) -> None:
        pod = self._as_written(pending.pod)
        patch = self._patch(pod, pending.wish)
        if patch is None:
            return
        uid = pod.info.uid
        result = await repeated(lambda: self._try(pod, patch), lambda: self._is_wanted(uid))
        match result:
            case Done():
                self._remember(uid, _Written(pending.pod.version, result.value))
                if result.value.node and pending.wish.denies_binding:
                    await self._correct(pod)
            case Refused() if not self._is_over(uid, result):
                _LOG.warning("status of pod %s is not written: %s", visible(pod.info.key), result.text)
            case Lost():
                if self._is_wanted(uid):
                    await asyncio.sleep(_AWAY)
                self._put_back(pending)

    async def _correct(self, pod: LivePod) -> None:
        """Say that a pod is scheduled, which the last patch denied: the pod was bound before the patch came.

        Somebody else bound it, or a binding of ours was carried out after its connection was lost.
        """
        patch = bound_patch(pod.info.uid, to_seconds(self._clock.now()))
        result = await repeated(lambda: self._api.patch_status(pod.info, patch))
        is_over = isinstance(result, Refused) and (result.is_gone or result.is_recreated)
        if not (is_over or isinstance(result, Done)):
            _LOG.warning("pod %s is bound, its condition stays: %s", visible(pod.info.key), result.text)

    def _is_wanted(self, uid: str) -> bool:
        """Return whether to send a write: no newer wish waits, and the pod was not forgotten."""
        with self._lock:
            return uid not in self._pending and uid not in self._unwanted

    def _patch(self, pod: LivePod, wish: StatusWish) -> bytes | None:
        now = to_seconds(self._clock.now())
        return (whole_patch if pod.info.uid in self._unsure else patch_for)(pod, wish, now)

    async def _try(self, pod: LivePod, patch: bytes) -> Result[SeenPod]:
        """Send a patch; after a lost answer the status counts as unknown until a patch succeeds."""
        uid = pod.info.uid
        result = await self._api.patch_status(pod.info, patch, is_wanted=lambda: self._is_wanted(uid))
        if isinstance(result, Lost) or (isinstance(result, Refused) and result.status >= _SERVER_FAULT):
            with self._lock:
                self._unsure[uid] = None
                if len(self._unsure) > _REMEMBERED:
                    del self._unsure[next(iter(self._unsure))]
        return result

    def _is_over(self, uid: str, refused: Refused) -> bool:
        """Return whether a refused patch is not needed: its pod is gone or bound, or has a newer wish."""
        if refused.is_gone or refused.is_recreated or _BOUND_FIELD in refused.fields:
            return True
        with self._lock:
            return uid in self._pending

    def _put_back(self, pending: _Pending) -> None:
        """Queue a wish again until the server is back, unless there is a newer one."""
        with self._lock:
            newer = self._pending.get(pending.pod.info.uid)
            if pending.pod.info.uid in self._unwanted:
                return
            if newer is None:
                self._pending[pending.pod.info.uid] = pending
            else:
                wish = newer.wish.over(pending.wish)
                self._pending[pending.pod.info.uid] = _Pending(newer.pod, wish)

    def _as_written(self, pod: LivePod) -> LivePod:
        """Return the pod after the last patch, while the watch does not show that yet."""
        with self._lock:
            written = self._written.get(pod.info.uid)
        if written is None or not written.is_newer_than(pod):
            return pod
        seen = written.seen
        info = replace(pod.info, nominated_node_name=seen.nominated)
        return replace(pod, info=info, conditions=seen.conditions, generation=seen.generation)

    def _remember(self, uid: str, written: _Written) -> None:
        with self._lock:
            self._unsure.pop(uid, None)
            self._written.pop(uid, None)
            self._written[uid] = written
            if len(self._written) > _REMEMBERED:
                del self._written[next(iter(self._written))]

"""Binding as in HAMi: lock the node, set the bind phase, bind; release the lock if that fails.

Otherwise the device plugin of the node releases the lock when the pod's containers have their cards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from kdsl.base.times import SECOND
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.bindings import BindingEnd
from kdsl.extender.hami.events import HamiEvents
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.reservations import Reservation, Reservations
from kdsl.extender.hami.writes import Writes
from kdsl.extender.protocol import ExtenderBindingArgs
from kdsl.hooks.status import Status
from kdsl.live.services import Host
from kdsl.live.writing.bridge import BridgeError
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.locks import CONTENTION, NodeLock
from kdsl.plan.devices.plugin import ALLOCATING, BIND_PHASE, BIND_TIME, DevicesPlugin

POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
"""The label of the members of a pod group."""
RETRY_EVERY: Final = 0.1


@dataclass(frozen=True, slots=True)
class Bindable:
    """A pod to bind and the locks to take; or with `refusal` the reason not to bind it."""

    pod: PodInfo | None = None
    locks: tuple[NodeLock, ...] = ()
    refusal: str = ""


class BindingCheck:
    """Checks whether a pod may be bound, on the scheduling thread."""

    def __init__(
        self,
        devices: DevicesPlugin,
        host: Host,
        reservations: Reservations,
        options: HamiOptions,
    ) -> None:
        self._devices, self._live = devices, host.scheduler
        self._reservations, self._options = reservations, options

    def check(self, args: ExtenderBindingArgs) -> Bindable:
        """Check a pod and the node of its binding.

        A pod that requests cards is only bound to the node of the cards that filter assigned.
        """
        key = f"{args.namespace}/{args.name}"
        given, seen = self._reservations.of(key), self._live.known.pod(key)
        pod = given.pod if given is not None else None if seen is None else seen.info
        if pod is None:
            return Bindable(refusal=f'pod "{key}" not found')
        if args.uid and pod.uid != args.uid:
            return Bindable(refusal=f'pod "{key}" has the uid {pod.uid}, not {args.uid}')
        cache = self._live.cache
        if not cache.has_node(args.node):
            return Bindable(pod, refusal=f"failed to get node {args.node}")
        demand = self._devices.demand(pod, cache.snapshot(), is_admitted=True)
        if not isinstance(demand, Demand):
            return Bindable(pod, refusal=demand.message if isinstance(demand, Status) else "")
        if given is None or given.node != args.node:
            return Bindable(pod, refusal=_without_cards(key, args.node, given))
        if self._is_contested(pod, args.node):
            self._reservations.take_back(pod)
            return Bindable(pod, refusal=f"cards of pod {key} on node {args.node} were given to others, too")
        return Bindable(pod, tuple(map(self._timed, self._devices.locks_for(demand))))

    def _is_contested(self, pod: PodInfo, node: str) -> bool:
        """Return whether one of the pod's cards is assigned beyond its capacity.

        That happens only if a write that removes outdated annotations failed, and the extender was restarted
        after it.
        """
        snapshot, inventories = self._live.cache.snapshot(), self._devices.inventories
        info = snapshot.node(node)
        if info is None:
            return False
        grants = inventories.records.grants(pod).values()
        own = {grant.id for granted in grants for grant in granted}
        return any(
            card.used > card.slots or card.used_memory > card.memory or card.used_cores > card.cores
            for card in inventories.cards(info)
            if card.id in own
        )

    def _timed(self, lock: NodeLock) -> NodeLock:
        """Return the lock with its duration: a flag sets that of HAMi's own lock."""
        return replace(lock, seconds=self._options.lock_seconds) if lock.is_owned else lock


class Binding:
    """Binds pods. For the event loop."""

    def __init__(
        self,
        host: Host,
        writes: Writes,
        events: HamiEvents,
        options: HamiOptions,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._live, self._writes, self._events = host.scheduler, writes, events
        self._options, self._sleep = options, sleep
        # Bindings to one node take its lock in sequence, so the second one reads the lock of the first.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def bind(self, bindable: Bindable, node: str) -> str:
        """Bind a pod and record the event; return the error, empty for a bound pod."""
        pod = bindable.pod
        if pod is None:
            return bindable.refusal
        problem = bindable.refusal or await self._locked(pod, bindable.locks, node)
        event = self._events.bind_failed(pod, problem) if problem else self._events.bound(pod, node)
        self._live.record_plainly(event)
        return problem

    async def _locked(self, pod: PodInfo, locks: tuple[NodeLock, ...], node: str) -> str:
        problem = await self._acquire(pod, locks, node)
        if problem:
            return problem
        try:
            problem, may_be_bound = await self._bind(pod, node)
        except BaseException:
            await self._release(pod, locks, node)
            raise
        # If the pod may be bound, its device plugin serves it, and finds it by the lock.
        if problem and not may_be_bound:
            await self._release(pod, locks, node)
        return problem

    async def _bind(self, pod: PodInfo, node: str) -> tuple[str, bool]:
        """Write the bind phase and bind; return the error, and whether the pod may be bound nevertheless."""
        seconds = str(self._live.options.wall.now() // SECOND)
        phase = {BIND_PHASE: ALLOCATING, BIND_TIME: seconds}
        status = await self._writes.annotations.write_pod(pod, phase)
        if status is not None:
            return status.message, False
        answer = await self._writes.bindings.bind(pod, node)
        if answer.end is BindingEnd.BOUND:
            return "", True
        return answer.message or f"pod {pod.key} is gone", not answer.is_known

    async def _acquire(self, pod: PodInfo, locks: tuple[NodeLock, ...], node: str) -> str:
        """Take the locks; members of pod groups wait for locks of other pods."""
        waited, patience = 0.0, self._options.lock_patience if pod.labels.get(POD_GROUP) else 0.0
        while locks:
            try:
                async with self._turns.setdefault(node, asyncio.Lock()):
                    status = await self._writes.on_thread(self._writes.locks.acquire, locks, node, pod.key)
            except BridgeError as error:
                return str(error)
            if status is None:
                return ""
            if CONTENTION not in status.message or not patience:
                return status.message
            if waited >= patience:
                return f"timed out after {patience:g}s waiting for node {node} to be unlocked: {CONTENTION}"
            await self._sleep(RETRY_EVERY)
            waited += RETRY_EVERY
        return ""

    async def _release(self, pod: PodInfo, locks: tuple[NodeLock, ...], node: str) -> None:
        await self._writes.release(locks, node, pod.key)


def _without_cards(key: str, node: str, given: Reservation | None) -> str:
    where = "none" if given is None else f"those of node {given.node}"
    return f"pod {key} has no cards of node {node}: filter gave it {where}"

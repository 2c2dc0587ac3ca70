"""Assembles a live scheduler: engine, cache, feed, loop, and everything that writes to the API server.

`kdsl run` makes one, starts it on an event loop, and fills its inbox from watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from kdsl.app import Scheduler
from kdsl.base.clock import Clock, SteadyClock, SystemClock
from kdsl.base.events import Action, Resource
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.bindings import Reserved
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import Engine
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.live.cache_feed import CacheFeed, FeedListeners
from kdsl.live.http.messages import Sender
from kdsl.live.loop import Gates, LoopParts, SchedulingLoop
from kdsl.live.run_record import RunRecord
from kdsl.live.runner import DRAIN, LoopThread
from kdsl.live.watching.inbox import Inbox
from kdsl.live.writing.annotations import Annotations
from kdsl.live.writing.api import Api
from kdsl.live.writing.binder import IN_FLIGHT, BinderGates, LiveBinder
from kdsl.live.writing.binding_requests import BindingRequests
from kdsl.live.writing.bridge import Bridge
from kdsl.live.writing.claim_waits import Waits
from kdsl.live.writing.events import Event, EventsApi
from kdsl.live.writing.evictions import Evictions, PlannedPreemption
from kdsl.live.writing.handshakes import HandshakeKeeper
from kdsl.live.writing.known import KnownObjects
from kdsl.live.writing.outlets import Outlets, Silence
from kdsl.live.writing.ports import (
    LivePermits,
    PortBinder,
    PortClaims,
    PortManifests,
    PortNodeAnnotations,
    PortPodAnnotations,
    PortVolumes,
    Victims,
)
from kdsl.live.writing.recorder import EventRecorder
from kdsl.live.writing.reporter import Reporter
from kdsl.live.writing.status_writer import StatusWriter
from kdsl.live.writing.volumes import Volumes
from kdsl.live.writing.write_counts import UNOBSERVED, WriteObserver
from kdsl.plan.compile.device_conditions import CelConditions

Make = Callable[[PluginContext], Scheduler]
"""Make the deciding part, with plugins built on the given ports: `build_scheduler`, `load_scheduler`."""
_ALWAYS: Final = Gates()
_LAST_WORDS: Final = 1.0
"""Seconds in which the last conditions and events are written when a scheduler stops."""
_CHECK_EVERY: Final = 0.02


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """Options of a live scheduler: events name `host`, `in_flight` bounds the bindings under way.

    `steady` is the clock of the queue, `wall` the clock for times that other programs read. With `advises`
    another scheduler decides, and writes events and status: this one only binds on request. `record` gets
    all decisions; it needs the JSON of pods and nodes (`keeps_raw` of the needs).
    """

    host: str = ""
    in_flight: int = IN_FLIGHT
    events_api: EventsApi = EventsApi.EVENTS
    steady: Clock = field(default_factory=SteadyClock)
    wall: Clock = field(default_factory=SystemClock)
    advises: bool = False
    record: RunRecord | None = None


class LiveScheduler:
    """A scheduler between an inbox and a sender.

    `start` and `stop` are for the thread of the event loop, `adopt` for any thread. Metrics and explanations
    may read the attributes below on the scheduling thread only: post a message to the inbox for that.
    """

    def __init__(
        self,
        make: Make,
        inbox: Inbox,
        sender: Sender,
        gates: Gates = _ALWAYS,
        options: LiveOptions | None = None,
        observer: WriteObserver = UNOBSERVED,
    ) -> None:
        """Raises the InvalidInputError of `make`."""
        self.options = options = options or LiveOptions()
        self._inbox = inbox
        self._gates = gates = replace(gates, takes_pods=False) if options.advises else gates
        self.known, self.cache = KnownObjects(), ClusterCache()
        self._waits = Waits(self._is_stopped)
        self._writers = _Writers(
            sender, options, observer, self._waits, self.known, self._room_is_made, gates.leads
        )
        self._bridge = Bridge()
        writers = self._writers
        self._permits = LivePermits(inbox.wake)
        self._nodes = PortNodeAnnotations(self._bridge, self.known, writers.annotations)
        self._claims = PortClaims(
            self._bridge, self.cache, writers.api, options.wall, self._waits, self._wake_waiting
        )
        self.context = PluginContext(
            PortBinder(self._bridge, writers.requests),
            options.wall,
            self._permits,
            PortVolumes(self._bridge, self.cache, writers.volumes),
            PortPodAnnotations(self._bridge, self.cache, writers.annotations),
            PortManifests(self.known),
            self._nodes,
            is_live=True,
            claims=self._claims,
            conditions=CelConditions(),
        )
        self.outlets = _outlets(self.known, options, writers)
        self.binder = self._new_binder()
        self.handshakes = HandshakeKeeper(self.known, self._nodes, options.wall, gates.leads)
        self.loop = self._new_loop(make(self.context))
        self.thread = LoopThread(self.loop, self._bridge.claim_thread)
        self._tasks: list[asyncio.Task[None]] = []

    def _new_binder(self) -> LiveBinder:
        gates = BinderGates(
            self.outlets.prepare,
            self._writers.status.settled,
            self._gates.leads,
            self.known.has_node,
            self._waits.notice,
        )
        return LiveBinder(
            self._writers.requests,
            lambda settled: self._inbox.post(partial(self.loop.finish, settled)),
            gates,
            self.options.in_flight,
        )

    def _new_loop(self, made: Scheduler) -> SchedulingLoop:
        waiting, victims = WaitingPods[Reserved](), Victims()
        self._permits.attach(waiting)
        record = self.options.record
        if record is not None:
            record.attach(self.cache, self.known, self.options.wall)
        self.engine = Engine(
            made.tables,
            self.cache,
            self.options.steady,
            made.options,
            waiting=waiting,
            router=made.router,
            evictor=victims,
            bindings=self.binder,
            tracer=record,
        )
        if record is not None:
            record.follow(self.engine)
        listeners = FeedListeners(
            self._note_gated, self._writers.status.forget, self._waits.notice, self._claims.notice
        )
        # With `advises` the other scheduler binds all pods: none of these bindings is foreign.
        leads = (lambda: False) if self.options.advises else self._gates.leads
        self.feed = CacheFeed(self.cache, self.engine, self.known, leads, listeners)
        parts = LoopParts(
            self.engine, self.cache, self.feed, self.binder, self.outlets, victims, self.options.steady
        )
        return SchedulingLoop(self._inbox, parts, self._gates)

    async def start(self) -> None:
        """Start writing, and deciding on the contents of the inbox."""
        self._bridge.connect()
        self._waits.start()
        self._writers.start()
        self.binder.start()
        self._tasks.append(asyncio.create_task(self.handshakes.run(), name="handshakes"))
        self.thread.start()

    async def stop(self, drain: float = DRAIN) -> bool:
        """Stop deciding, let work under way end within `drain` seconds, and return whether all bindings did.

        Bindings come first, then what the failed ones give back: locks of nodes, devices. Then evictions,
        conditions and events get a second. Release the lease after this.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + drain
        self.thread.stop(drain)
        self._inbox.wake()
        has_ended = await asyncio.to_thread(self.thread.join, drain + 1)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.binder.close()
        await self._bridge.settle(end - clock())
        await self._writers.settle(min(_LAST_WORDS, end - clock()))
        await self._writers.close()
        self._bridge.disconnect()
        return has_ended and self.loop.is_drained

    @property
    def api(self) -> Api:
        """The client for all writes."""
        return self._writers.api

    def adopt(self, made: Scheduler) -> None:
        """Use other rules from the next pod on; `made` was made with the `context` of this scheduler."""
        self._inbox.post(partial(self.loop.adopt, made))

    def record(self, event: Event) -> None:
        """Record an event; from any thread."""
        self._writers.recorder.record(event)

    def record_plainly(self, event: Event) -> None:
        """Record an event in core/v1, as events about a lease always are; from any thread."""
        self._writers.plain_recorder.record(event)

    def _is_stopped(self, pod: str) -> bool:
        return self.binder.is_stopped(pod)

    def _wake_waiting(self, claim: ResourceClaim) -> None:
        # As if the claim were gone, but for the queue alone: a record must not lose it.
        event = ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE, claim)
        self._inbox.post(lambda: self.engine.queue.notice(event))

    def _note_gated(self, decision: Decision, pod: PodInfo) -> None:
        self.outlets.publish(decision, pod, "")

    def _room_is_made(self, preemption: PlannedPreemption, problem: str) -> None:
        self._inbox.post(partial(self.loop.room_is_made, preemption, problem))


class _Writers:
    """All parts that write to the API server, through one shared `Api`."""

    def __init__(
        self,
        sender: Sender,
        options: LiveOptions,
        observer: WriteObserver,
        waits: Waits,
        known: KnownObjects,
        ended: Callable[[PlannedPreemption, str], None],
        leads: Callable[[], bool],
    ) -> None:
        api = Api(sender, leads)
        self.api = api
        self.requests = BindingRequests(api)
        self.annotations, self.volumes = Annotations(api), Volumes(api, waits, known.node)
        self.status = StatusWriter(api, options.wall, observer)
        self.recorder = EventRecorder(api, options.wall, options.events_api, observer)
        self.plain_recorder = EventRecorder(api, options.wall, EventsApi.CORE, observer)
        self.evictions = Evictions(
            api, self.recorder, Reporter(options.host), options.wall, ended, observer, leads
        )

    def start(self) -> None:
        for each in (self.status, self.recorder, self.plain_recorder, self.evictions):
            each.start()

    async def settle(self, timeout: float) -> None:
        """Wait until everything is written, `timeout` seconds at most."""
        clock = asyncio.get_running_loop().time
        end, writers = clock() + timeout, (self.evictions, self.status, self.recorder, self.plain_recorder)
        while clock() < end and not all(each.is_idle for each in writers):
            await asyncio.sleep(_CHECK_EVERY)

    async def close(self) -> None:
        for each in (self.evictions, self.status, self.recorder, self.plain_recorder):
            await each.close()


def _outlets(known: KnownObjects, options: LiveOptions, writers: _Writers) -> Outlets:
    reporter = Reporter(options.host)
    if options.advises:
        return Outlets(known, reporter, Silence(), Silence(), Silence())
    return Outlets(known, reporter, writers.status, writers.recorder, writers.evictions)

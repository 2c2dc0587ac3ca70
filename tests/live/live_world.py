"""A live scheduler over an API server in memory, all on one thread and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from kdsl.app import Scheduler, Settings, build_scheduler, check_rules, shipped_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.context import PluginContext
from kdsl.live.assembly import LiveOptions, LiveScheduler
from kdsl.live.loop import LONGEST_WAIT, Gates
from kdsl.live.watching.changes import ObjectChange, Verb
from kdsl.live.watching.inbox import Inbox
from kdsl.plan.router import ForcedProfile

from kdsl_plugins.default_binder.plugin import DefaultBinder
from tests.cycle.world import table
from tests.live.cluster_api import ClusterApi
from tests.live.virtual_time import VirtualClock, run_virtually


@cache
def shipped() -> RuleSet:
    """The shipped rules, checked once."""
    rules = check_rules((shipped_rules(),)).rules
    assert rules is not None
    return rules


SETTINGS = Settings(profiles=("kubernetes.v1_36.default",))


def default_profile(context: PluginContext) -> Scheduler:
    """Make a scheduler of the shipped default profile."""
    return build_scheduler(shipped(), context, SETTINGS)


def profile_of(**plugins: Callable[[PluginContext], object]) -> Callable[[PluginContext], Scheduler]:
    """Say how to make a scheduler of these plugins, and the default binder after them."""

    def make(context: PluginContext) -> Scheduler:
        made = {name: build(context) for name, build in plugins.items()}
        frozen = table({**made, "default-binder": DefaultBinder({}, context)})
        return Scheduler(shipped(), SETTINGS, (frozen,), ForcedProfile("default"), EngineOptions(), context)

    return make


class RingingInbox(Inbox):
    """An inbox that says when something comes in: the pump need not look all the time."""

    def __init__(self) -> None:
        super().__init__(coalesce_from=3)
        self.rings = asyncio.Event()

    def post(self, message: Any) -> None:
        super().post(message)
        self.rings.set()


class World:
    """One scheduler, its API server, and the watch between them. `await run(seconds)` lets time go by."""

    def __init__(
        self,
        api: ClusterApi | None = None,
        make: Callable[[PluginContext], Scheduler] = default_profile,
        in_flight: int = 512,
    ) -> None:
        self.api = api or ClusterApi()
        self.leads = True
        self.is_watching = True
        self.inbox = RingingInbox()
        clock = VirtualClock(asyncio.get_running_loop())
        gates = Gates(lambda: self.leads, lambda: True)
        options = LiveOptions("host", in_flight, steady=clock, wall=clock)
        self.scheduler = LiveScheduler(make, self.inbox, self.api, gates, options)
        self.pump: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """List, watch, and begin."""
        scheduler = self.scheduler
        for change in self.api.changes_of_all():
            scheduler.feed.take(change)
        self.api.listeners.append(self.watch)
        scheduler._bridge.connect()
        scheduler._writers.start()
        scheduler.binder.start()
        self.pump = asyncio.create_task(self._pump())

    def watch(self, change: ObjectChange) -> None:
        """Deliver a change, as the watch does."""
        if self.is_watching:
            self.deliver(change)

    def deliver(self, change: ObjectChange) -> None:
        """Deliver a change, watching or not."""
        self.inbox.rings.set()
        put = self.inbox.put([change])
        try:
            put.send(None)
        except StopIteration:
            return  # there is room, so it did not wait
        raise AssertionError("the inbox is full")

    def relist(self, *, knows_uids: bool = True) -> None:
        """Watch again after a gap: what is gone is dropped, everything else is put.

        Who does not know uids drops nothing of which there is another one under its name.
        """
        self.is_watching = True
        for change in drops_since(self.scheduler, self.api):
            if knows_uids or change.key not in self.api.objects[change.resource]:
                self.deliver(change)
        for change in self.api.changes_of_all():
            self.deliver(change)

    async def run(self, seconds: float) -> None:
        """Let time go by."""
        await asyncio.sleep(seconds)

    async def stop(self) -> None:
        """End without ado, as a process that is killed."""
        if self.pump is not None:
            self.pump.cancel()
            await asyncio.gather(self.pump, return_exceptions=True)
        if self.watch in self.api.listeners:
            self.api.listeners.remove(self.watch)
        await self.scheduler.binder.close()
        await self.scheduler._writers.close()
        self.scheduler._bridge.disconnect()
        self.scheduler.engine.close()

    async def _pump(self) -> None:
        loop, rings = self.scheduler.loop, self.inbox.rings
        while True:
            rings.clear()
            loop.turn(0.0)
            assert loop.counts.crashes == 0, "a step of the loop failed"
            await asyncio.sleep(0)
            waiting = asyncio.get_running_loop().call_later(loop.patience(LONGEST_WAIT), rings.set)
            await rings.wait()
            waiting.cancel()


def drops_since(scheduler: LiveScheduler, api: ClusterApi) -> list[ObjectChange]:
    """Return the drops of objects that a relist misses, as the scheduler last knew them."""
    found: list[ObjectChange] = []
    known = scheduler.known
    for live in (*known.pending(), *known.placed()):
        key = live.info.key
        there = api.objects["pods"].get(key)
        if there is None or there["metadata"]["uid"] != live.info.uid:
            found.append(ObjectChange(Verb.DROP, "pods", key, live.info.uid, "", live, is_stale=True))
    for node in known.nodes():
        if node.facts.name not in api.objects["nodes"]:
            found.append(ObjectChange(Verb.DROP, "nodes", node.facts.name, node.uid, "", node, is_stale=True))
    return found


def live(scenario: Callable[[World], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Play a scenario with a scheduler that has begun."""

    async def play() -> None:
        world = World(**options)
        await world.start()
        try:
            await scenario(world)
        finally:
            await world.stop()

    run_virtually(play)

"""All watches of a cluster: a reflector for each needed resource, and its health."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from kdsl.live.watching.changes import ObjectChange
from kdsl.live.watching.health import ResourceHealth, WatchObserver
from kdsl.live.watching.inbox import Inbox
from kdsl.live.watching.mirror import Mirror
from kdsl.live.watching.needs import Needs, merged
from kdsl.live.watching.recovery import Recovery
from kdsl.live.watching.reflector import Reflector
from kdsl.live.watching.resources import NODES, PODS, ApiResource
from kdsl.live.watching.standing import Standing
from kdsl.live.watching.watch_source import BRISK_TIMES, DEFAULT_TIMES, Source

_ESSENTIAL = frozenset({PODS.name, NODES.name})
"""The resources without which nothing can be decided: if a server does not serve them, that is a failure, and
their silence is detected sooner than that of others.
"""


class _Followed:
    """A watched resource."""

    def __init__(self, resource: ApiResource, standing: Standing, mirror: Mirror) -> None:
        self.resource = resource
        self.standing = standing
        self.mirror = mirror
        self.task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class _Shown:
    """The state that other threads see: all that is followed, and the needed names, with JSON or not.

    It is replaced as a whole, so that nobody sees a resource missing while it is added.
    """

    followed: tuple[_Followed, ...]
    needed: frozenset[str]
    needs_raw: bool

    def health(self, done: int) -> Iterator[ResourceHealth]:
        return (each.standing.health(done) for each in self.followed)


class Watches:
    """Watches resources and puts changes into an inbox.

    `probe` checks whether the server is back. Watches of pods and nodes last less than a minute, others
    minutes. Everything but `health` and `is_ready` is for the thread of the loop.
    """

    def __init__(
        self,
        source: Source,
        probe: Callable[[], Awaitable[bool]],
        inbox: Inbox,
        random: Random,
        observer: WatchObserver,
    ) -> None:
        self._source = source
        self._inbox = inbox
        self._random = random
        self._observer = observer
        self._recovery = Recovery(probe, random)
        self._followed: dict[str, _Followed] = {}
        self._group: asyncio.TaskGroup | None = None
        self._keeps_raw = False
        self._shown = _Shown((), frozenset(), False)

    def follow(self, needed: Needs, coming: Needs | None = None) -> None:
        """Watch exactly the needed resources from now on, and those `coming` into use; drop the others.

        If the JSON of objects is needed for the first time, everything is listed again.
        """
        needs = needed if coming is None else merged(needed, coming)
        wanted = {resource.name: resource for resource in needs.resources}
        for name in [each for each in self._followed if each not in wanted]:
            self._drop(self._followed.pop(name))
        if needs.keeps_raw and not self._keeps_raw:
            for followed in self._followed.values():
                self._renew(followed)
        self._keeps_raw = needs.keeps_raw
        for name, resource in wanted.items():
            if name not in self._followed:
                self._followed[name] = self._begin(resource)
        names = frozenset(resource.name for resource in needed.resources)
        self._shown = _Shown(tuple(self._followed.values()), names, needed.keeps_raw)

    async def run(self) -> None:
        """Watch until the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for followed in self._followed.values():
                    self._start(followed)
                await asyncio.Event().wait()
            finally:
                self._group = None

    @property
    def is_ready(self) -> bool:
        """Return whether the scheduling thread has handled all initial objects."""
        health = self.health
        return bool(health) and all(each.is_ready for each in health)

    @property
    def health(self) -> tuple[ResourceHealth, ...]:
        """Return the health of each needed resource."""
        shown, done = self._shown, self._inbox.done
        needed = (each for each in shown.health(done) if each.resource in shown.needed)
        return tuple(_as_renewed(each) if shown.needs_raw else each for each in needed)

    @property
    def coming(self) -> tuple[ResourceHealth, ...]:
        """Return the health of each resource that is not needed yet, or whose JSON is not."""
        shown, done = self._shown, self._inbox.done
        return tuple(
            _as_renewed(each)
            for each in shown.health(done)
            if each.resource not in shown.needed or not (shown.needs_raw or each.is_renewed)
        )

    def _begin(self, resource: ApiResource) -> _Followed:
        is_essential = resource.name in _ESSENTIAL
        standing = Standing(resource.name, self._observer, can_be_absent=not is_essential)
        mirror = Mirror(resource, standing.malformed, keeps_raw=self._keeps_raw)
        followed = _Followed(resource, standing, mirror)
        self._start(followed)
        return followed

    def _start(self, followed: _Followed) -> None:
        if self._group is None:
            return
        name = followed.resource.name
        reflector = Reflector(
            followed.mirror,
            self._source,
            self._inbox.put,
            followed.standing,
            self._recovery,
            # One for each, so that its numbers do not depend on the others.
            Random(self._random.random()),
            BRISK_TIMES if name in _ESSENTIAL else DEFAULT_TIMES,
        )
        followed.task = self._group.create_task(reflector.run(), name=f"watch {name}")

    def _drop(self, followed: _Followed) -> None:
        """Stop watching a resource, and report its objects as gone: no rule reads them any more."""
        if followed.task is not None:
            followed.task.cancel()
        self._observer.not_watched(followed.resource.name)
        changes = followed.mirror.replacement().finish()
        if changes and self._group is not None:
            self._group.create_task(self._put(changes), name=f"drop {followed.resource.name}")

    def _renew(self, followed: _Followed) -> None:
        """List a resource again, so that each object comes once more, with its JSON."""
        if followed.task is not None:
            followed.task.cancel()
        followed.mirror.renew()
        followed.standing.renew()
        self._start(followed)

    async def _put(self, changes: list[ObjectChange]) -> None:
        await self._inbox.put(changes)


def _as_renewed(health: ResourceHealth) -> ResourceHealth:
    """Return the health of a resource whose JSON is needed."""
    return health if health.is_renewed else replace(health, is_synced=False)

"""A reflector at work on a fake server, and what the scheduling thread would hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from kdsl.live.watching.changes import ObjectChange, Verb
from kdsl.live.watching.health import ResourceHealth
from kdsl.live.watching.mirror import Mirror
from kdsl.live.watching.recovery import Recovery
from kdsl.live.watching.reflector import Reflector
from kdsl.live.watching.resources import RESOURCES
from kdsl.live.watching.standing import Standing
from kdsl.live.watching.watch_source import WatchTimes

from tests.live.fake_api import FakeApi


@dataclass
class Heard:
    """The delivered changes, and the cluster that they make. It checks the laws of delivery."""

    state: dict[str, tuple[str, str]] = field(default_factory=dict)
    changes: list[ObjectChange] = field(default_factory=list)

    async def deliver(self, changes: Sequence[ObjectChange]) -> int:
        for change in changes:
            known = self.state.get(change.key)
            if change.verb is Verb.DROP:
                assert known is not None and known[0] == change.uid, "a drop of what is not known"
                assert change.object is not None
                del self.state[change.key]
            else:
                assert known != (change.uid, change.version), "an object that did not change"
                assert known is None or known[0] == change.uid, "another uid without a drop"
                self.state[change.key] = change.uid, change.version
        self.changes += changes
        return len(self.changes)

    def texts(self) -> list[str]:
        """The changes in short; those since are given once."""
        taken, self.changes = self.changes, []
        return [f"{each.verb} {each.key}{' stale' if each.is_stale else ''}" for each in taken]


@dataclass
class Following:
    api: FakeApi
    heard: Heard
    mirror: Mirror
    standing: Standing

    @property
    def health(self) -> ResourceHealth:
        return self.standing.health(len(self.heard.changes) + 10**6)

    @property
    def is_equal(self) -> bool:
        """Return whether the delivered objects, the mirrored ones and those of the server are equal."""
        there = {name: _known(thing) for name, thing in self.api.objects.items()}
        mirrored = {key: (known.uid, known.version) for key, known in self.mirror.known().items()}
        return self.heard.state == there == mirrored


class SilentObserver:
    """Counts nothing."""

    def received(self, resource: str, kind: str) -> None:
        return None

    def synced(self, resource: str, is_synced: bool) -> None:
        return None

    def not_watched(self, resource: str) -> None:
        return None

    def watch_failed(self, resource: str, reason: str) -> None:
        return None


def _known(thing: dict[str, dict[str, str]]) -> tuple[str, str]:
    return thing["metadata"]["uid"], thing["metadata"]["resourceVersion"]


@asynccontextmanager
async def following(api: FakeApi, seed: int = 0, times: WatchTimes | None = None) -> AsyncIterator[Following]:
    heard, random = Heard(), Random(seed)
    standing = Standing(api.plural, SilentObserver())
    mirror = Mirror(RESOURCES[api.plural], standing.malformed)
    recovery = Recovery(api.probe, random)
    reflector = Reflector(mirror, api, heard.deliver, standing, recovery, random, times or WatchTimes())
    task = asyncio.create_task(reflector.run())
    try:
        yield Following(api, heard, mirror, standing)
    finally:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()

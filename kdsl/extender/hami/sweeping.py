"""Releases stray locks of nodes: those left by a scheduler or device plugin that ended in between.

HAMi leaves them for five minutes. During that time no pod gets cards of the node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from kdsl.base.times import SECOND
from kdsl.base.visible import visible
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.writes import Writes
from kdsl.live.services import Host
from kdsl.plan.devices.handshakes import PERIOD
from kdsl.plan.devices.locks import NodeLock, owner_of, taken_at
from kdsl.plan.devices.plugin import ALLOCATING, BIND_PHASE

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stray:
    """A lock of a node that its pod (`namespace/name`) does not need any more."""

    lock: NodeLock
    node: str
    pod: str


class Sweeper:
    """Releases stray locks. `busy` are the pods of calls under way."""

    def __init__(
        self,
        host: Host,
        writes: Writes,
        options: HamiOptions,
        locks: Callable[[], Collection[NodeLock]],
        busy: Collection[str],
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._host, self._live = host, host.scheduler
        self._writes, self._options = writes, options
        self._kinds, self._busy, self._leads = locks, busy, leads

    async def run(self) -> None:
        """Repeat `round` until cancelled."""
        while True:
            await asyncio.sleep(PERIOD / SECOND)
            try:
                await self.round()
            except Exception:  # noqa: BLE001 - the next round tries again
                _LOG.exception("stray locks of nodes were not released")

    async def round(self) -> int:
        """Release the stray locks; return their number."""
        if not (self._leads() and self._host.is_ready()):
            return 0
        strays = await self._host.ask(lambda: list(self._strays()))
        released = 0
        for stray in strays:
            if stray.pod not in self._busy and await self._writes.release(
                [stray.lock], stray.node, stray.pod
            ):
                _LOG.info("node %s: the lock of pod %s was released", stray.node, visible(stray.pod))
                released += 1
        return released

    def _strays(self) -> Iterator[Stray]:
        owned = [lock for lock in self._kinds() if lock.is_owned]
        now = self._live.options.wall.now()
        for node in self._live.known.nodes():
            for lock in owned:
                held = node.facts.annotations.get(lock.key, "")
                since, owner = taken_at(held) if held else None, owner_of(held)
                if since is None or not owner or now - since < self._options.stray_seconds * SECOND:
                    continue
                if not self._is_served(owner, node.facts.name):
                    yield Stray(lock, node.facts.name, owner)

    def _is_served(self, key: str, node: str) -> bool:
        """Return whether a pod is on the node and still waits for cards from its device plugin."""
        seen = self._live.known.pod(key)
        if seen is None or seen.info.node_name != node:
            return False
        return seen.info.annotations.get(BIND_PHASE, ALLOCATING) == ALLOCATING

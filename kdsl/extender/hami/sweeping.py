"""Locks of nodes that nobody needs any more, because a scheduler or a device plugin ended in between.

HAMi leaves them for five minutes, in which no pod gets cards of the node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from kdsl.base.visible import visible
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.writes import Writes
from kdsl.live.services import Host
from kdsl.plan.devices.handshakes import PERIOD
from kdsl.plan.devices.locks import NodeLock, owner_of, taken_at
from kdsl.plan.devices.plugin import ALLOCATING, BIND_PHASE

_SECOND: Final = 10**9
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stray:
    """A lock of a node that a pod `namespace/name` does not need."""

    lock: NodeLock
    node: str
    pod: str


class Sweeper:
    """Gives stray locks back. `busy` are the pods that are being bound by this process."""

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
        """Look for stray locks until cancelled."""
        while True:
            await asyncio.sleep(PERIOD / _SECOND)
            try:
                await self.round()
            except Exception:  # noqa: BLE001 - the next round tries again
                _LOG.exception("stray locks of nodes were not given back")

    async def round(self) -> int:
        """Give back what is stray now; return how many locks that were."""
        if not (self._leads() and self._host.is_ready()):
            return 0
        strays = await self._host.ask(lambda: list(self._strays()))
        for stray in strays:
            if stray.pod not in self._busy:
                _LOG.info("node %s: the lock of pod %s is given back", stray.node, visible(stray.pod))
                await self._writes.on_thread(self._writes.locks.release, [stray.lock], stray.node, stray.pod)
        return len(strays)

    def _strays(self) -> Iterator[Stray]:
        owned = [lock for lock in self._kinds() if lock.is_owned]
        now = self._live.options.wall.now()
        for node in self._live.known.nodes():
            for lock in owned:
                held = node.facts.annotations.get(lock.key, "")
                since, owner = taken_at(held) if held else None, owner_of(held)
                if since is None or not owner or now - since < self._options.stray_seconds * _SECOND:
                    continue
                if not self._is_served(owner, node.facts.name):
                    yield Stray(lock, node.facts.name, owner)

    def _is_served(self, key: str, node: str) -> bool:
        """Tell whether a pod is on the node, and its device plugin has not given it all of its cards."""
        seen = self._live.known.pod(key)
        if seen is None or seen.info.node_name != node:
            return False
        return seen.info.annotations.get(BIND_PHASE, ALLOCATING) == ALLOCATING

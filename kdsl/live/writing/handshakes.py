"""Keeps the handshakes with device plugins alive, beside the scheduling thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from kdsl.base.clock import Clock
from kdsl.base.times import SECOND
from kdsl.base.visible import visible
from kdsl.hooks.context import NodeAnnotator
from kdsl.live.writing.known import KnownObjects
from kdsl.plan.devices.handshakes import PERIOD, Handshakes
from kdsl.plan.devices.inventories import Inventories

_LOG: Final = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]


class HandshakeKeeper:
    """Writes the handshakes that are due, every 15 seconds while this instance leads."""

    def __init__(
        self,
        known: KnownObjects,
        nodes: NodeAnnotator,
        clock: Clock,
        leads: Callable[[], bool],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._known, self._nodes, self._clock = known, nodes, clock
        self._leads, self._sleep = leads, sleep
        self._inventories: Inventories | None = None
        self.problems = 0
        """The number of handshakes that could not be written."""

    def use(self, inventories: Inventories | None) -> None:
        """Keep the handshakes of these inventories alive from the next round on; None: of no cards.

        No other thread may use the inventories.
        """
        self._inventories = inventories

    async def run(self) -> None:
        """Write handshakes until cancelled. For the thread of the event loop."""
        while True:
            await self._sleep(PERIOD / SECOND)
            await self.round()

    async def round(self) -> None:
        """Write the handshakes that are due, once."""
        inventories = self._inventories
        if inventories is None or not self._leads():
            return
        handshakes = Handshakes(inventories, self._nodes, self._clock)
        facts = [node.facts for node in self._known.nodes()]
        try:
            problems = await asyncio.to_thread(handshakes.shake, facts)
        except Exception:  # noqa: BLE001 - the next round tries again
            self.problems += 1
            _LOG.exception("handshakes with device plugins ended with an error")
            return
        self.problems += len(problems)
        for node, status in problems.items():
            _LOG.warning("handshake on node %s is not written: %s", visible(node), status.message)

"""A cluster of one vendor with an extender, and what its pods go through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any

import uvloop
from kdsl.app import Settings, check_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.extender.hami.options import HamiOptions

from tests.extender.hami.vendors import VENDORS, Plugin, Vendor, check_cards
from tests.extender.hami.world import NODES, Cluster, Extender, Json, cluster, patched

RULES = Path(__file__).with_name("life.kdsl")


@cache
def rules() -> RuleSet:
    checked = check_rules([RULES])
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


class Life:
    """A cluster of one vendor with an extender, and what its pods go through."""

    def __init__(
        self, cluster: Cluster, vendor: Vendor, nodes: tuple[str, ...], options: dict[str, Any]
    ) -> None:
        self.cluster, self.vendor, self.nodes = cluster, vendor, nodes
        self._options = options
        self.plugins = {name: Plugin(cluster, vendor, name) for name in nodes}
        self._restarts = 0
        self.extender: Extender

    async def start(self) -> None:
        """Add the nodes, which register nothing yet, and start the extender."""
        for name in self.nodes:
            room = {"cpu": "8", "memory": "32Gi", "pods": "110", self.vendor.resource: "16"}
            await self.cluster.post(
                NODES, {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}
            )
        self.extender = await self._begin()

    async def restart(self) -> None:
        """End the extender, every other time without warning, and start another one."""
        self._restarts += 1
        faults = self.cluster.world.sandbox.faults
        await (self.extender.kill(faults) if self._restarts % 2 else self.extender.stop())
        self.extender = await self._begin()

    async def _begin(self) -> Extender:
        settings = Settings(profile=f"life.{self.vendor.profile}")
        options = HamiOptions(**{"scheduler_name": self.vendor.scheduler, "stray_seconds": 0} | self._options)
        return await self.cluster.extender(rules(), settings, options)

    async def admitted(self, pod: Json) -> Json:
        """Make a pod as a cluster does: patched by the webhook."""
        return await self.cluster.create(patched(pod, await self.extender.review(pod)))

    async def filter(self, pod: Json) -> Json:
        """Ask about all nodes, and see that no card is given away twice."""
        await self.cluster.seen_by(self.extender)
        answer = await self.extender.filter(pod, list(self.nodes))
        await check_cards(self.cluster, self.vendor)
        return answer

    async def locks(self) -> list[str]:
        """Return the locks that nodes have."""
        found = [(await self.cluster.annotations(name)).get(self.vendor.lock) for name in self.nodes]
        return [each for each in found if each]


def play(
    name: str,
    scenario: Callable[[Life], Coroutine[Any, Any, None]],
    nodes: tuple[str, ...] = ("n1",),
    *,
    registers: bool = False,
    **options: Any,
) -> None:
    """Play a scenario with a vendor's nodes; `registers`: their cards are there."""

    async def run() -> None:
        async with cluster() as world:
            life = Life(world, VENDORS[name], nodes, options)
            await life.start()
            for plugin in life.plugins.values() if registers else ():
                await plugin.register()
            await scenario(life)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())

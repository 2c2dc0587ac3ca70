"""Random churn in HAMi's place: pods come, are filtered, bound, served, deleted and finished in any order.

The extender ends and begins again at any point, requests get lost. After each step no card is given away twice; in
the end everything that has cards is served, and no node is locked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from kdsl.sandbox.faults import Answer, LoseAnswer, LoseRequest

from tests.extender.hami.life import Life, play
from tests.extender.hami.vendors import CHOSEN_NODE, PHASE, check_cards
from tests.extender.hami.world import FINISHED, PODS, Json

STEPS = 120
NODES = ("n1", "n2", "n3")


class Churn:
    def __init__(self, life: Life, seed: int) -> None:
        self.life, self.random = life, Random(seed)
        self.made = 0

    async def run(self) -> None:
        acts = [self.create, self.filter, self.filter, self.bind, self.bind, self.serve, self.serve]
        acts += [self.end, self.fault]
        for _ in range(STEPS):
            await self.random.choice(acts)()
            if self.random.random() < 0.04:
                await self.life.restart()
            await check_cards(self.life.cluster, self.life.vendor, bound_only=True)
        self.life.cluster.world.sandbox.faults.clear()
        await self.life.cluster.seen_by(self.life.extender)
        await self.settle()

    async def settle(self) -> None:
        """Bind and serve all pods that have cards."""
        for _ in range(60):
            await self.life.cluster.seen_by(self.life.extender)
            await self.life.extender.behaviour.sweeper.round()
            for pod in await self.pods(lambda pod: not _node(pod) and bool(_chosen(pod))):
                await self.life.extender.bind(pod, _chosen(pod))
            for name in NODES:
                while await self.life.plugins[name].allocate():
                    pass
            waiting = await self.pods(lambda pod: not _node(pod) and bool(_chosen(pod)))
            if not waiting and not await self.life.locks():
                break
        assert await self.life.locks() == []
        for pod in await self.pods(lambda pod: bool(_node(pod))):
            assert pod["metadata"]["annotations"][PHASE] == "success", pod["metadata"]
        await check_cards(self.life.cluster, self.life.vendor, bound_only=True)

    # ---- what happens ------------------------------------------------------------------------------------

    async def create(self) -> None:
        self.made += 1
        vendor = self.life.vendor
        limits = self.random.choice([vendor.limits, vendor.limits, vendor.large])
        await self.life.admitted(vendor.pod(f"p{self.made}", limits))

    async def filter(self) -> None:
        pod = await self.one_of(lambda pod: not _node(pod))
        if pod is not None:
            names = self.random.sample(NODES, self.random.randint(1, len(NODES)))
            await self.life.extender.filter(pod, names)

    async def bind(self) -> None:
        pod = await self.one_of(lambda pod: not _node(pod) and bool(_chosen(pod)))
        if pod is not None:
            await self.life.extender.bind(pod, _chosen(pod))

    async def serve(self) -> None:
        await self.life.plugins[self.random.choice(NODES)].allocate()

    async def end(self) -> None:
        pod = await self.one_of(lambda pod: True)
        if pod is None:
            return
        name = pod["metadata"]["name"]
        is_served = _node(pod) and pod["metadata"]["annotations"].get(PHASE) == "success"
        if is_served and self.random.random() < 0.5:
            await self.life.cluster.finish(name)
        elif is_served or not _node(pod):
            await self.life.cluster.remove(f"{PODS}/{name}")

    async def fault(self) -> None:
        action = self.random.choice([Answer(500), Answer(409), LoseRequest(), LoseAnswer()])
        faults = self.life.cluster.world.sandbox.faults
        faults.once(lambda request: request.method in ("PATCH", "POST"), action)

    # ---- what there is -----------------------------------------------------------------------------------

    async def pods(self, wanted: Callable[[Json], bool]) -> list[Json]:
        listed = (await self.life.cluster.get(PODS))["items"]
        return [pod for pod in listed if pod["status"].get("phase") not in FINISHED and wanted(pod)]

    async def one_of(self, wanted: Callable[[Json], bool]) -> Json | None:
        found = await self.pods(wanted)
        return self.random.choice(found) if found else None


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _chosen(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(CHOSEN_NODE, ""))


@pytest.mark.parametrize(("vendor", "seed"), [("nvidia", 1), ("mig", 2), ("ascend", 3), ("acme", 4)])
def test_churn(vendor: str, seed: int) -> None:
    async def scenario(life: Life) -> None:
        await Churn(life, seed).run()

    play(vendor, scenario, NODES, registers=True)

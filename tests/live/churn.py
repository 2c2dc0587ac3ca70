"""Random churn: `python -m tests.live.churn --minutes N [--seed S]`.

Pods and nodes come, change and go; answers are lost, events come twice, watches break and are listed again;
the scheduler is killed and started at any point, or the lease goes to another one. All by a seed, in virtual time.
After a while everything heals, and then must hold: every pod that fits is bound, none twice, no node has more
than it can take, every condition is true, and the scheduler knows what the API server knows.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import click

from tests.live.cluster_api import ClusterApi, Fault, Json, node, pod
from tests.live.live_world import World
from tests.live.virtual_time import run_virtually

HEALING = 700.0
"""Virtual seconds for everything to come to rest: bindings looked up, pods woken by time alone."""
HANDOVER = 8.0


@dataclass
class Churn:
    """One run. `rivals` is the number of instances; one of them leads. Problems that were seen are collected."""

    seed: int
    rivals: int = 1
    steps: int = 150
    has_foreign_binds: bool = False
    random: Random = field(init=False)
    api: ClusterApi = field(default_factory=ClusterApi)
    worlds: list[World] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    async def run(self) -> list[str]:
        """Play, heal, and return what does not hold."""
        for at in range(4):
            self.api.create("nodes", self._node(f"n{at}"))
        for at in range(self.rivals):
            await self._begin(leads=at == 0)
        keeping = asyncio.create_task(self._kubelet())
        for _ in range(self.steps):
            await self.random.choice(self._actions())()
            await asyncio.sleep(self.random.choice((0.0, 0.001, 0.01, 0.1, 1.0)))
        await self._heal()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        self._check()
        for world in self.worlds:
            await world.stop()
        return self.problems

    def _node(self, name: str) -> Json:
        """Return a new node."""
        return node(name, cpu=4)

    def _pod(self, name: str, cpu: int = 1, **fields: Any) -> Json:
        """Return a new pod."""
        return pod(name, cpu, **fields)

    def _world(self) -> World:
        """Return a new instance of the scheduler."""
        return World(self.api)

    # ---- what happens ------------------------------------------------------------------------------------

    def _actions(self) -> list[Callable[[], Awaitable[None]]]:
        often = [self._create, self._create, self._create, self._delete, self._finish]
        faults = [self._fail, self._fail, self._lose, self._lose, self._slow, self._away]
        rest = [self._nodes, self._nodes, self._cordon, self._gap, self._gap, self._twice, self._restart]
        rest += [self._replace, self._replace, self._race]
        if self.rivals > 1:
            rest.append(self._hand_over)
        if self.has_foreign_binds:
            rest.append(self._bind_by_hand)
        return [*often, *often, *faults, *rest]

    async def _begin(self, leads: bool) -> World:
        world = self._world()
        world.leads = leads
        await world.start()
        self.worlds.append(world)
        return world

    async def _create(self) -> None:
        # Names come back: a pod may be another one than the one that was known by its name.
        name = f"p{self.random.randrange(25)}"
        if f"default/{name}" not in self.api.objects["pods"]:
            cpu, priority = self.random.choice((1, 1, 2, 3, 5)), self.random.choice((0, 0, 0, 100))
            self.api.create("pods", self._pod(name, cpu, priority=priority))

    async def _delete(self) -> None:
        key = self._any_pod()
        if not key:
            return
        thing = self.api.objects["pods"][key]
        if thing["spec"].get("nodeName") or self.random.random() < 0.3:
            self.api.change("pods", key, _terminate)
        else:
            self.api.remove("pods", key)

    async def _replace(self) -> None:
        """Delete a pod while it is being bound, and make another one of its name, which is bound at once."""
        name = f"p{self.random.randrange(25)}"
        key = f"default/{name}"
        if key not in self.api.objects["pods"]:
            self.api.faults.insert(0, Fault("POST", f"{name}/binding", delay=1.0))
            self.api.create("pods", self._pod(name))
            await asyncio.sleep(0.1)
        thing = self.api.objects["pods"].get(key)
        if thing is not None and not thing["spec"].get("nodeName"):
            if self.random.random() < 0.5:
                self.api.change("pods", key, _terminate)
                await asyncio.sleep(0.01)
            if key in self.api.objects["pods"]:
                self.api.remove("pods", key)
            self.api.create("pods", self._pod(name))

    async def _race(self) -> None:
        """Have room come while the condition of a pod without room is being written."""
        name = f"p{self.random.randrange(25)}"
        if f"default/{name}" in self.api.objects["pods"] or "wide" in self.api.objects["nodes"]:
            return
        self.api.faults.insert(0, Fault("PATCH", f"{name}/status", delay=2.5))
        selector = {"kubernetes.io/hostname": "wide"}
        self.api.create("pods", self._pod(name, 4, nodeSelector=selector))
        await asyncio.sleep(0.5)
        self.api.create("nodes", self._node("wide"))
        await asyncio.sleep(self.random.choice((0.1, 3.0)))
        self.api.remove("nodes", "wide")

    async def _finish(self) -> None:
        key = self._any_pod()
        if key and self.api.node_of(key):
            self.api.change("pods", key, lambda thing: thing["status"].update(phase="Succeeded"))

    async def _nodes(self) -> None:
        name = f"n{self.random.randrange(5)}"
        if name not in self.api.objects["nodes"]:
            self.api.create("nodes", self._node(name))
            return
        self.api.remove("nodes", name)
        if self.random.random() < 0.5:
            self.api.create("nodes", self._node(name))

    async def _cordon(self) -> None:
        names = sorted(self.api.objects["nodes"])
        if names:
            is_cordoned = self.random.random() < 0.5
            name = self.random.choice(names)
            self.api.change("nodes", name, lambda thing: thing["spec"].update(unschedulable=is_cordoned))

    async def _fail(self) -> None:
        method, ends = self.random.choice((("POST", "/binding"), ("PATCH", "/status"), ("DELETE", "")))
        status = self.random.choice((409, 500, 503, 429))
        self.api.faults.append(Fault(method, ends, self.random.randrange(1, 4), status=status))

    async def _lose(self) -> None:
        is_done = self.random.random() < 0.7
        ends = self.random.choice(("/binding", "/binding", "/status"))
        self.api.faults.append(Fault(ends=ends, is_lost=True, is_done=is_done))

    async def _slow(self) -> None:
        ends = self.random.choice(("/binding", "/binding", "/status", "/events"))
        self.api.faults.append(Fault(ends=ends, delay=self.random.choice((0.05, 0.5, 3.0))))

    async def _away(self) -> None:
        self.api.is_away = True
        await asyncio.sleep(self.random.choice((0.1, 2.0, 20.0)))
        self.api.is_away = False

    async def _gap(self) -> None:
        """Break a watch, or mend it."""
        world = self.random.choice(self.worlds)
        if world.is_watching:
            world.is_watching = False
        else:
            # Some reflectors tell of another pod under a name as of a change of the one before.
            world.relist(knows_uids=self.random.random() < 0.7)

    async def _twice(self) -> None:
        changes = self.api.changes_of_all()
        world = self.random.choice(self.worlds)
        if changes and world.is_watching:
            world.deliver(self.random.choice(changes))

    async def _restart(self) -> None:
        world = self.random.choice(self.worlds)
        self.worlds.remove(world)
        await world.stop()
        await asyncio.sleep(self.random.choice((0.0, 1.0)))
        await self._begin(world.leads)

    async def _hand_over(self) -> None:
        """Take the lease from who has it; the next one leads when that one's requests are over."""
        for world in self.worlds:
            world.leads = False
        await asyncio.sleep(HANDOVER)
        world = self.random.choice(self.worlds)
        if not world.is_watching:
            world.relist()
        await asyncio.sleep(0.1)
        world.leads = True

    async def _bind_by_hand(self) -> None:
        key, names = self._any_pod(), sorted(self.api.objects["nodes"])
        if key and names and not self.api.node_of(key):
            name = self.random.choice(names)
            self.foreign.add(self.api.objects["pods"][key]["metadata"]["uid"])
            self.api.change("pods", key, lambda thing: thing["spec"].update(nodeName=name))

    def _any_pod(self) -> str:
        return self.random.choice(sorted(self.api.objects["pods"]) or [""])

    async def _kubelet(self) -> None:
        """Remove pods that are told to end, and those of nodes that are gone; watch the nodes' room."""
        while True:
            await asyncio.sleep(0.5)
            for key, thing in list(self.api.objects["pods"].items()):
                name = thing["spec"].get("nodeName", "")
                is_orphan = bool(name) and name not in self.api.objects["nodes"]
                if thing["metadata"].get("deletionTimestamp") or is_orphan:
                    self.api.remove("pods", key)
            self._check_room()

    # ---- what must hold ----------------------------------------------------------------------------------

    async def _heal(self) -> None:
        self.api.faults.clear()
        self.api.is_away = False
        for name in list(self.api.objects["nodes"]):
            self.api.change("nodes", name, lambda thing: thing["spec"].update(unschedulable=False))
        for world in self.worlds:
            if not world.is_watching:
                world.relist()
        if not any(world.leads for world in self.worlds):
            self.worlds[0].leads = True
        await asyncio.sleep(HEALING)

    def _used(self) -> dict[str, int]:
        used: dict[str, int] = {}
        for thing in self.api.objects["pods"].values():
            name = thing["spec"].get("nodeName", "")
            if name and thing["status"].get("phase") != "Succeeded":
                used[name] = used.get(name, 0) + _cpu(thing)
        return used

    def _check_room(self) -> None:
        if self.has_foreign_binds:
            return
        for name, used in self._used().items():
            if used > 4:
                self._blame(f"node {name} has {used} CPUs taken of 4")

    def _check(self) -> None:
        self._check_room()
        uids = [uid for uid, _ in self.api.bound]
        for uid in {uid for uid in uids if uids.count(uid) > 1}:
            self._blame(f"pod {uid} was bound twice")
        used = self._used()
        for key, thing in self.api.objects["pods"].items():
            self._check_pod(key, thing, used)
        for world in self.worlds:
            self._check_knowledge(world)

    def _check_pod(self, key: str, thing: Json, used: dict[str, int]) -> None:
        condition = self.api.condition(key).get("status", "")
        is_foreign = thing["metadata"]["uid"] in self.foreign
        if thing["spec"].get("nodeName"):
            if condition != "True" and not is_foreign:
                self._blame(f"pod {key} is bound, but its condition is {condition!r}")
            return
        # A node that a pod selects is gone.
        names = () if "nodeSelector" in thing["spec"] else self.api.objects["nodes"]
        room = next((name for name in names if self._has_room(thing, name, used)), "")
        if room:
            self._blame(f"pod {key} fits on node {room}, and it is not bound")
        if condition != "False":
            self._blame(f"pod {key} is not bound, but its condition is {condition!r}")

    def _has_room(self, thing: Json, name: str, used: dict[str, int]) -> bool:
        """Return whether a pod fits on a node."""
        return 4 - used.get(name, 0) >= _cpu(thing)

    def _check_knowledge(self, world: World) -> None:
        scheduler = world.scheduler
        cache, queue = scheduler.cache, scheduler.engine.queue
        for key, thing in self.api.objects["pods"].items():
            if thing["status"].get("phase") == "Succeeded":
                continue
            name, known = thing["spec"].get("nodeName", ""), cache.pod(key)
            if name != (known.node_name if known is not None else ""):
                self._blame(f"pod {key} is on {name!r}, the cache says {known and known.node_name!r}")
            if cache.is_assumed(key):
                self._blame(f"pod {key} is still assumed")
            if not name and queue.pending(key) is None:
                self._blame(f"pod {key} is forgotten")
        placed = {
            each.key for row in cache.snapshot().order.tolist() for each in cache.snapshot().info(row).pods
        }
        for key in placed - self.api.objects["pods"].keys():
            self._blame(f"pod {key} is gone, and still in the cache")
        if scheduler.engine.bindings_under_way or scheduler.binder.under_way:
            self._blame("a binding is still under way")

    def _blame(self, problem: str) -> None:
        if len(self.problems) < 20:
            self.problems.append(f"seed {self.seed}: {problem}")


def _terminate(thing: Json) -> None:
    thing["metadata"]["deletionTimestamp"] = "2026-11-23T04:00:00Z"


def _cpu(thing: Json) -> int:
    return int(thing["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def play(seed: int, steps: int = 150) -> list[str]:
    """Play one run; every third has two instances, every fourth pods that others bind, every fifth cards."""
    from tests.live.card_churn import CardChurn  # it is a churn itself

    churn = CardChurn if seed % 5 == 4 else Churn
    return run_virtually(
        lambda: churn(
            seed, rivals=2 if seed % 3 == 2 else 1, steps=steps, has_foreign_binds=seed % 4 == 3
        ).run()
    )


@click.command()
@click.option("--minutes", default=1.0, help="How long to go on.")
@click.option("--seed", default=0, help="The first seed.")
@click.option("--steps", default=300, help="What happens in one run.")
def main(minutes: float, seed: int, steps: int) -> None:
    """Play one run after the other."""
    logging.disable()
    end, runs, problems = time.monotonic() + 60 * minutes, 0, 0
    while time.monotonic() < end:
        found = play(seed + runs, steps)
        for problem in found:
            click.echo(problem)
        runs, problems = runs + 1, problems + bool(found)
    click.echo(f"{runs} runs, {problems} with problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

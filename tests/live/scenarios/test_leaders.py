"""Scenarios 28 and 29, and two instances at once: one lease, and no pod bound twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from random import Random

import pytest
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.hooks.context import PluginContext
from kdsl.reload import Reloaded
from kdsl.sandbox import Answer, Delay, LoseAnswer, LoseRequest, Match

from tests.live.scenarios.world import SHORT_LEASE, Instance, ShippedSources, World, kind, play

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kdsl"


def _holder(world: World) -> str:
    lease = world.get("kdsl", kind("leases"), "kube-system") or {"spec": {}}
    return str(lease["spec"].get("holderIdentity", ""))


def _has_seen(cache: ClusterCache, pods: int) -> bool:
    return cache.pod_count >= pods and cache.assumed_count == 0


def _bound_twice(world: World) -> list[str]:
    """Return the uids of pods for which more than one binding was accepted."""
    done = Counter(each.document["metadata"]["uid"] for each in world.bindings() if each.status == 201)
    return [uid for uid, count in done.items() if count > 1]


def test_s12_28_the_next_leads_at_once_where_the_lease_is_given_back() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        first = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: first.leads)
        second = await world.start(lease=SHORT_LEASE)
        names = [f"a-{number}" for number in range(20)]
        for name in names[:10]:
            await world.pod(name, "10m")
        await first.stop()
        await world.until(lambda: second.leads, 1.5)
        for name in names[10:]:
            await world.pod(name, "10m")
        await world.until(lambda: world.bound(*names))
        assert not _bound_twice(world)
        lease = world.get("kdsl", kind("leases"), "kube-system") or {}
        assert lease["spec"]["leaseTransitions"] == 1

    play(scenario)


def test_a_scheduler_that_is_ended_while_it_loads_its_rules_takes_no_lease() -> None:
    class Ending(ShippedSources):
        def load(self, context: PluginContext) -> Reloaded:
            begun[0].process.stop()
            return super().load(context)

    begun: list[Instance] = []

    async def scenario(world: World) -> None:
        begun.append(world.begin(sources=Ending(), lease=SHORT_LEASE))
        await begun[0].task
        assert not world.requests("*", "*/leases*") and not world.requests("GET", "*/pods")

    play(scenario)


def test_a_scheduler_that_does_not_know_the_cluster_takes_no_lease() -> None:
    async def scenario(world: World) -> None:
        refused = world.sandbox.faults.always(Match("GET", "*/poddisruptionbudgets"), Answer(403))
        first = world.begin(lease=SHORT_LEASE)
        await world.until(lambda: refused.used >= 2)
        assert not world.requests("*", "*/leases*")
        world.sandbox.faults.clear()
        await world.until(lambda: first.leads)

    play(scenario)


def test_s12_29_a_stolen_lease_ends_binding_within_its_deadline() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        leader = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: leader.leads)
        await world.patch(LEASE, {"spec": {"holderIdentity": "thief"}})
        await world.until(lambda: not leader.leads, SHORT_LEASE.deadline)
        await world.pod("a")
        await world.while_(lambda: not world.bindings(), 0.7)
        assert _holder(world) == "thief"

    play(scenario)


def test_a_binding_that_waits_for_its_repetition_is_not_sent_once_the_lease_is_lost() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        leader = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: leader.leads)
        world.sandbox.faults.once(Match("POST", "*/binding"), Answer(429, retry_after=1))
        await world.pod("a")
        await world.until(world.bindings)
        await world.patch(LEASE, {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}})
        await world.while_(lambda: len(world.bindings()) == 1, 1.5)
        assert not leader.leads and not world.at("a") and not world.condition("a")

    play(scenario)


def test_fault_16_two_schedulers_without_a_lease_do_no_harm_to_a_pod() -> None:
    async def scenario(world: World) -> None:
        await world.nodes(4)
        first, second = await world.start(), await world.start()
        names = [f"a-{number}" for number in range(40)]
        for name in names:
            await world.pod(name, "10m")
        await world.until(lambda: world.bound(*names))
        await world.until(lambda: all(each.status for each in world.bindings()))
        for each in (first, second):
            cache = each.process.scheduler.cache
            await world.until(partial(_has_seen, cache, len(names)))
        assert not _bound_twice(world)
        assert all(world.condition(name)["status"] == "True" for name in names)
        assert any(each.status == 409 for each in world.bindings())

    play(scenario)


def test_fault_26_bindings_under_way_are_ended_before_the_lease_is_given_back() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        leader = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: leader.leads)
        world.sandbox.faults.always(Match("POST", "*/binding"), Delay(0.5))
        names = [f"a-{number}" for number in range(30)]
        for name in names:
            await world.pod(name, "10m")
        await world.until(lambda: len(world.bindings()) == len(names))
        await leader.stop()
        assert world.bound(*names) and not _holder(world)
        released = [
            each for each in world.requests("PUT", LEASE) if not each.document["spec"]["holderIdentity"]
        ]
        assert released and all(each.at < released[0].at for each in world.bindings())

    play(scenario)


@pytest.mark.parametrize("seed", [1, 2])
def test_two_instances_bind_no_pod_twice_whatever_is_lost(seed: int) -> None:
    """Seconds of lost requests, lost answers, cuts and deletions, by chance; then all pods are bound once."""
    chance = Random(seed)

    async def trouble(world: World, number: int) -> None:
        faults = world.sandbox.faults
        match chance.randrange(6):
            case 0:
                faults.times(3, Match("POST", "*/binding"), LoseAnswer())
            case 1:
                faults.times(3, Match("POST", "*/binding"), LoseRequest())
            case 2:
                faults.times(4, Match("P*", "*/leases*"), LoseAnswer())
            case 3:
                faults.drop_watches()
            case 4:
                faults.restart()
            case 5:
                await world.delete(f"a-{number}")

    async def scenario(world: World) -> None:
        await world.nodes(4, "1")
        first = await world.start(lease=SHORT_LEASE)
        await world.until(lambda: first.leads)
        await world.start(lease=SHORT_LEASE)
        for number in range(40):
            await world.pod(f"a-{number}", "100m")
            if number % 4 == 0:
                await trouble(world, number)
            if number == 20:
                # The leader is cut off for longer than its lease lasts, as far as it can tell.
                world.sandbox.faults.partition()
                await asyncio.sleep(0.3)
                world.sandbox.faults.heal()
            await asyncio.sleep(0.01)
        world.sandbox.faults.clear()
        left = [f"a-{number}" for number in range(40) if world.get(f"a-{number}")]
        await world.until(lambda: len([name for name in left if world.bound(name)]) >= min(len(left), 40), 8)
        assert not _bound_twice(world)
        used = Counter(world.at(name) for name in left)
        assert all(count <= 10 for count in used.values())
        await world.until(lambda: all(world.condition(name)["status"] == "True" for name in left))

    play(scenario)

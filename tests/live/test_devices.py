"""Cards on a live cluster: annotations and locks are written before the binding, and given back if it fails."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from kdsl.app import Scheduler, Settings, build_scheduler, devices_in_use
from kdsl.hooks.context import PluginContext
from kdsl.live.writing.handshakes import HandshakeKeeper
from kdsl.plan.devices.inventories import Inventories

from tests.live.cluster_api import Fault, Json, node, pod
from tests.live.live_world import World, live, shipped

SETTINGS = Settings(profiles=("devices.profiles.gpu",))
SCHEDULER = "gpu-scheduler"
LOCK = "hami.io/mutex.lock"
SHAKE = "hami.io/node-handshake"


def gpu_profile(context: PluginContext) -> Scheduler:
    return build_scheduler(shipped(), context, SETTINGS)


def gpu_node(name: str) -> Json:
    rows = [{"id": f"{name}-0", "count": 4, "devmem": 1000, "devcore": 100, "type": "NVIDIA", "health": True}]
    made = node(name)
    made["metadata"]["annotations"] = {"hami.io/node-nvidia-register": json.dumps(rows)}
    made["status"]["allocatable"] = {**made["status"]["allocatable"], "nvidia.com/gpu": "4"}
    return made


def gpu_pod(name: str, memory: int = 400) -> Json:
    made = pod(name, schedulerName=SCHEDULER)
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    made["spec"]["containers"][0]["resources"]["limits"] = limits
    return made


def annotations_of(world: World, resource: str, key: str) -> dict[str, Any]:
    return dict(world.api.objects[resource][key]["metadata"].get("annotations", {}))


def test_38_a_pod_gets_its_annotations_and_the_node_its_lock_before_the_binding() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", gpu_node("n1"))
        world.api.create("pods", gpu_pod("a"))
        await world.run(2.0)
        assert world.api.node_of("default/a") == "n1"
        written = annotations_of(world, "pods", "default/a")
        assert written["hami.io/vgpu-node"] == "n1"
        assert written["hami.io/bind-phase"] == "allocating"
        assert "n1-0" in written["hami.io/vgpu-devices-allocated"]
        assert annotations_of(world, "nodes", "n1")[LOCK].endswith(",default,a")
        order = [f"{one.method} {one.path.rpartition('/')[2]}" for one in world.api.requests]
        assert order.index("PATCH n1") < order.index("PATCH a") < order.index("POST binding")

        # The next pod waits until the device plugin has served this one.
        world.api.create("pods", gpu_pod("b"))
        await world.run(2.0)
        assert "node lock contention" in world.api.condition("default/b")["message"]
        world.api.change("nodes", "n1", lambda thing: thing["metadata"]["annotations"].pop(LOCK))
        await world.run(6.0)
        assert world.api.node_of("default/b") == "n1"

    live(scenario, make=gpu_profile)


def test_a_lock_is_given_back_where_the_pod_is_not_bound() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", gpu_node("n1"))
        world.api.faults.append(Fault("POST", "/binding", status=403))
        world.api.create("pods", gpu_pod("a"))
        world.is_watching = False  # so the watch has not shown the lock when it is to be given back
        await world.run(0.8)
        assert world.api.condition("default/a")["reason"] == "SchedulerError"
        assert LOCK not in annotations_of(world, "nodes", "n1")

    live(scenario, make=gpu_profile)


def test_39_the_lock_of_a_deleted_pod_is_taken_over() -> None:
    async def scenario(world: World) -> None:
        made = gpu_node("n1")
        made["metadata"]["annotations"][LOCK] = "2025-11-23T03:28:03Z,default,gone"
        world.api.create("nodes", made)
        world.api.create("pods", gpu_pod("a"))
        await world.run(2.0)
        assert world.api.node_of("default/a") == "n1"

    live(scenario, make=gpu_profile)


def test_41_what_cards_have_left_is_the_same_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", gpu_node("n1"))
        world.api.create("pods", gpu_pod("a", memory=700))
        await world.run(2.0)
        world.api.change("nodes", "n1", lambda thing: thing["metadata"]["annotations"].pop(LOCK))
        other = World(world.api, gpu_profile)
        await world.stop()
        await other.start()
        world.api.create("pods", gpu_pod("b", memory=700))
        await other.run(3.0)
        assert world.api.node_of("default/b") == ""
        world.api.create("pods", gpu_pod("c", memory=300))
        await other.run(3.0)
        assert world.api.node_of("default/c") == "n1"
        await other.stop()

    live(scenario, make=gpu_profile)


@cache
def inventories() -> Inventories:
    """The programs that find cards, compiled once."""
    devices = next(devices_in_use(shipped(), Settings(profile="devices.profiles.gpu"), [SCHEDULER]))
    assert devices is not None
    return devices.inventories


def keeper_of(world: World, *, leads: bool = True) -> HandshakeKeeper:
    scheduler = world.scheduler
    keeper = HandshakeKeeper(scheduler.known, scheduler._nodes, scheduler.options.wall, lambda: leads)
    keeper.use(inventories())
    return keeper


def test_device_plugins_are_asked_to_shake_hands() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", gpu_node("n1"))
        world.api.create("nodes", node("plain"))
        await world.run(0.1)
        await keeper_of(world, leads=False).round()
        assert SHAKE not in annotations_of(world, "nodes", "n1")
        await keeper_of(world).round()
        assert annotations_of(world, "nodes", "n1")[SHAKE].startswith("Requesting_")
        assert SHAKE not in annotations_of(world, "nodes", "plain")

    live(scenario)


def test_a_handshake_that_cannot_be_written_is_counted() -> None:
    async def scenario(world: World) -> None:
        world.api.create("nodes", gpu_node("n1"))
        await world.run(0.1)
        world.api.faults.append(Fault("PATCH", "nodes/n1", times=9, status=403))
        keeper = keeper_of(world)
        await keeper.round()
        assert keeper.problems == 1

    live(scenario)

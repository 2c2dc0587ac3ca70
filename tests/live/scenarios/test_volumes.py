"""Scenarios 20 and 21: claims that wait for the node of their pod, and pods that wait for their claims."""

from __future__ import annotations

from typing import Any

from kdsl.sandbox.model.resources import named

from tests.live.scenarios.world import MERGE, World, play

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED = "volume.kubernetes.io/selected-node"


async def _claim(world: World, *names: str) -> None:
    kind = {
        "metadata": {"name": "later"},
        "provisioner": "p.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await world.send("POST", "/apis/storage.k8s.io/v1/storageclasses", kind)
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "later",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    for name in names:
        await world.send("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})


async def _pod_with(world: World, name: str, claim: str, **spec: Any) -> None:
    await world.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **spec)


async def _user(world: World) -> None:
    await world.node()
    await _claim(world, "c")
    await world.start()
    await _pod_with(world, "a", "c")


def _selected(world: World, name: str = "c") -> str:
    claim = world.get(name, named("persistentvolumeclaims")) or {}
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED, ""))


def test_s12_20_a_claim_gets_its_node_and_the_pod_is_bound_after_its_volume() -> None:
    async def scenario(world: World) -> None:
        await _user(world)
        await world.until(lambda: world.bound("a"))
        nominated = world.requests("PATCH", "*/pods/a/status")[0]
        assert nominated.document["status"]["nominatedNodeName"] == "n1"
        [chosen] = world.requests("PUT", f"{CLAIMS}/c")
        assert chosen.document["metadata"]["annotations"][SELECTED] == "n1"
        assert nominated.at <= chosen.at < world.bindings("a")[0].at
        claim = world.get("c", named("persistentvolumeclaims")) or {}
        assert claim["status"]["phase"] == "Bound" and not world.nominated("a")

    play(scenario, controllers=True)


def test_s12_21_a_node_that_is_given_back_is_chosen_again() -> None:
    async def scenario(world: World) -> None:
        await _user(world)
        await world.until(lambda: _selected(world) == "n1")
        # The provisioner gives up on the node.
        await world.patch(f"{CLAIMS}/c", {"metadata": {"annotations": {SELECTED: None}}}, MERGE)
        await world.until(lambda: world.condition("a").get("reason") == "SchedulerError")
        assert "selectedNode annotation reset for PVC" in world.condition("a")["message"]
        await world.until(lambda: not world.nominated("a"))
        await world.until(lambda: _selected(world) == "n1", 4)
        assert len(world.requests("PUT", f"{CLAIMS}/c")) == 2

    play(scenario)


def test_a_claim_that_gets_a_volume_of_another_node_while_its_pod_waits() -> None:
    async def scenario(world: World) -> None:
        for name in ("n1", "n2"):
            await world.node(name)
            await world.patch_node(name, {"metadata": {"labels": {"zone": f"of-{name}"}}})
        await _claim(world, "c")
        await world.start()
        await _pod_with(world, "a", "c")
        await world.until(lambda: _selected(world))
        other = "n2" if _selected(world) == "n1" else "n1"
        there = {"key": "zone", "operator": "In", "values": [f"of-{other}"]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "later",
            "csi": {"driver": "p.example.com", "volumeHandle": "v"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
        }
        await world.send("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
        done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        await world.patch(f"{CLAIMS}/c", {"metadata": done, "spec": {"volumeName": "v"}})
        await world.until(lambda: world.at("a") == other, 8)
        assert "node affinity doesn't match node" in world.events("FailedScheduling", "a")[0]["message"]

    play(scenario)


def test_pods_that_wait_for_volumes_hold_up_no_others() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        names = ["c0", "c1", "c2"]
        await _claim(world, *names)
        await world.start(in_flight=2)
        for name in names:
            await _pod_with(world, f"pod-of-{name}", name)
        await world.until(lambda: all(_selected(world, name) for name in names))
        await world.pod("plain")
        await world.until(lambda: world.bound("plain"))

    play(scenario)


def test_a_pod_that_waits_for_its_volume_leaves_its_room_at_once() -> None:
    async def scenario(world: World) -> None:
        await world.node()
        await _claim(world, "c")
        priority = {"metadata": {"name": "high"}, "value": 1000}
        await world.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        await world.start()
        await _pod_with(world, "low", "c", cpu="3")
        await world.until(lambda: _selected(world) == "n1")
        await world.pod("high", cpu="3", priorityClassName="high")
        await world.until(lambda: world.bound("high"))
        assert not world.at("low") and world.get("low")
        await world.delete("high")
        await world.until(lambda: world.nominated("low"))
        await world.delete("low")
        await world.until(lambda: not world.first.process.scheduler.binder.under_way)

    play(scenario)

"""Scenarios 20 and 21: claims that wait for the node of their pod."""

from __future__ import annotations

from kdsl.sandbox.resources import named

from tests.live.scenarios.world import MERGE, World, play

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SELECTED = "volume.kubernetes.io/selected-node"


async def _claim(world: World) -> None:
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
    await world.send("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": spec})


async def _user(world: World) -> None:
    await world.node()
    await _claim(world)
    await world.start()
    await world.pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])


def _selected(world: World) -> str:
    claim = world.get("c", named("persistentvolumeclaims")) or {}
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

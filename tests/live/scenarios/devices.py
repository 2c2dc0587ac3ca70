"""Nodes with devices that a DeviceClass offers, for scenarios."""

from __future__ import annotations

from typing import Final

from tests.live.scenarios.world import World

GROUP: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{GROUP}/namespaces/default/resourceclaims"
DRIVER: Final = "gpu.example.com"


async def gpus(world: World, *nodes: str) -> None:
    """Create the class `gpu`, which offers `example.com/gpu`, and nodes with two devices each: n1 if none are
    named.
    """
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    offer = {"selectors": [selector], "extendedResourceName": "example.com/gpu"}
    await world.send("POST", f"{GROUP}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": offer})
    for name in nodes or ("n1",):
        await world.node(name)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "g0"}, {"name": "g1"}]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        await world.send(
            "POST", f"{GROUP}/resourceslices", {"metadata": {"name": f"of-{name}"}, "spec": spec}
        )


async def claim(world: World) -> None:
    """Create the claim `c` for one device."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    await world.send("POST", CLAIMS, body)


async def pod_with_claim(world: World, name: str) -> None:
    """Create a pod that uses the claim `c`."""
    await world.pod(name, resourceClaims=[{"name": "c", "resourceClaimName": "c"}])

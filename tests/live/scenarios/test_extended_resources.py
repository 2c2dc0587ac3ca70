"""Extended resources that a DeviceClass offers: the claim is created before the pod is bound."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.resource_claims.extended_claims import ANNOTATION
from kdsl.sandbox import Answer, Match, RecordedRequest
from kdsl.sandbox.model.resources import named

from tests.live.scenarios.devices import CLAIMS, gpus
from tests.live.scenarios.world import World, play

GPU = "example.com/gpu"
RESOURCE = named("resourceclaims", "resource.k8s.io")


async def _pod_with_gpu(world: World, name: str = "a") -> None:
    await gpus(world)
    await world.start()
    amounts = {"requests": {GPU: "2"}, "limits": {GPU: "2"}}
    await world.pod(name, containers=[{"name": "c", "image": "i", "resources": amounts}])


def _time(request: RecordedRequest) -> float:
    return request.at


def _claims(world: World) -> list[dict[str, Any]]:
    return [request.document for request in world.requests("POST", CLAIMS)]


def test_a_claim_is_created_for_the_pod() -> None:
    async def scenario(world: World) -> None:
        await _pod_with_gpu(world)
        await world.until(lambda: world.bound("a"))
        pod = world.get("a") or {}
        status = pod["status"]["extendedResourceClaimStatus"]
        name = status["resourceClaimName"]
        assert name.startswith("a-extended-resources-")
        request = "container-0-request-0"
        assert status["requestMappings"] == [
            {"containerName": "c", "resourceName": GPU, "requestName": request}
        ]
        [written] = _claims(world)
        uid = pod["metadata"]["uid"]
        assert written == {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": "a-extended-resources-",
                "namespace": "default",
                "annotations": {ANNOTATION: "true"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": True}
                ],
            },
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": request,
                            "exactly": {
                                "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2,
                            },
                        }
                    ]
                }
            },
        }  # fmt: skip
        claim = world.get(name, RESOURCE) or {}
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["a"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        paths = (f"{CLAIMS}*", "*/pods/a/*")
        found = [one for path in paths for one in world.requests("*", path) if one.method != "GET"]
        asked = [f"{one.method} {one.path.removeprefix(CLAIMS)}" for one in sorted(found, key=_time)]
        first = asked.index("POST ")
        assert asked[first : first + 5] == [
            "POST ", f"PUT /{name}", f"PUT /{name}/status",
            "PATCH /api/v1/namespaces/default/pods/a/status", "POST /api/v1/namespaces/default/pods/a/binding",
        ]  # fmt: skip

    play(scenario)


def test_the_pod_may_have_a_long_name() -> None:
    async def scenario(world: World) -> None:
        name = f"{'a' * 232}.{'b' * 20}"
        await _pod_with_gpu(world, name)
        await world.until(lambda: world.bound(name))
        [written] = _claims(world)
        assert written["metadata"]["generateName"] == f"{'a' * 232}-extended-resources-"
        [claim] = world.sandbox.store.bodies(RESOURCE)
        assert claim["metadata"]["name"][:-5] == "a" * 58

    play(scenario)


@pytest.mark.parametrize(
    ("match", "text"),
    [
        (Match("POST", CLAIMS), "create claim for extended resources default/: "),
        (Match("PUT", f"{CLAIMS}/*/status"), "add allocation and reservation to claim default/a-extended-"),
        (Match("POST", "*/pods/a/binding"), 'running Bind plugin "DefaultBinder": '),
    ],
)
def test_a_failure_leaves_no_claim(match: Match, text: str) -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(match, Answer(403))
        await _pod_with_gpu(world)
        await world.until(lambda: world.condition("a").get("reason") == "SchedulerError")
        assert text in world.condition("a")["message"]
        await world.until(lambda: world.bound("a"), 20)
        status = (world.get("a") or {})["status"]
        names = [each["metadata"]["name"] for each in world.sandbox.store.bodies(RESOURCE)]
        assert names == [status["extendedResourceClaimStatus"]["resourceClaimName"]]

    play(scenario)

"""The webhook in HAMi's place: what it adds, in which order, and what it does not let in."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from tests.extender.hami.life import Life, play
from tests.extender.hami.vendors import ACME, ASCEND, NVIDIA
from tests.extender.hami.world import Json
from tests.extender.site import post

GPU = {"nvidia.com/gpu": "1"}


def patch_of(response: Json) -> list[Json]:
    assert response["allowed"], response
    if "patch" not in response:
        assert "patchType" not in response
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[Json] = json.loads(b64decode(response["patch"]))
    return found


def changed(pod: Json, **spec: Any) -> Json:
    return {**pod, "spec": {**pod["spec"], **spec}}


def test_only_what_is_meant_is_patched_in_a_fixed_order() -> None:
    async def scenario(life: Life) -> None:
        pod = changed(
            NVIDIA.pod("a", GPU, {"cpu": "1"}),
            schedulerName="default-scheduler",
            fieldOfTheFuture={"is": "kept"},
            initContainers=[{"name": "i", "image": "img:1", "resources": {"limits": GPU, "requests": GPU}}],
        )
        before = json.dumps(pod)
        assert patch_of(await life.extender.review(pod)) == [
            {"op": "replace", "path": "/spec/schedulerName", "value": "life-nvidia"},
            {
                "op": "add",
                "path": "/spec/initContainers/0/resources/limits/nvidia.com~1gpucores",
                "value": "100",
            },
            {
                "op": "add",
                "path": "/spec/containers/0/resources/limits/nvidia.com~1gpucores",
                "value": "100",
            },
        ]
        assert json.dumps(pod) == before

    play("nvidia", scenario)


def test_environment_and_annotations_are_added_to_those_that_are_there() -> None:
    async def scenario(life: Life) -> None:
        pod = ACME.pod("a", {"acme.example/card": "1"}, {"acme.example/card": "1"})
        pod["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
        pod["spec"]["schedulerName"] = "life-acme"
        added = {"name": "ACME_SHARED", "value": "true"}
        base = "/spec/containers"
        assert patch_of(await life.extender.review(pod)) == [
            {"op": "add", "path": f"{base}/0/resources/limits/acme.example~1gibibytes", "value": "1"},
            {"op": "add", "path": f"{base}/0/env/-", "value": added},
            {"op": "add", "path": f"{base}/1/resources/limits/acme.example~1gibibytes", "value": "1"},
            {"op": "add", "path": f"{base}/1/env", "value": [added]},
            {"op": "add", "path": "/metadata/annotations", "value": {"acme.example/admitted": "true"}},
        ]
        pod["metadata"]["annotations"] = {"other": "x"}
        *_, last = patch_of(await life.extender.review(pod))
        path = "/metadata/annotations/acme.example~1admitted"
        assert last == {"op": "add", "path": path, "value": "true"}

    play("acme", scenario)


def test_amounts_are_replaced_where_they_are_rounded() -> None:
    async def scenario(life: Life) -> None:
        memory = "huawei.com/Ascend910B3-memory"
        amounts = {"huawei.com/Ascend910B3": "1", memory: "20000"}
        pod = changed(ASCEND.pod("a", amounts), schedulerName="life-ascend")
        path = "/spec/containers/0/resources"
        escaped = memory.replace("/", "~1")
        assert patch_of(await life.extender.review(pod)) == [
            {"op": "replace", "path": f"{path}/limits/{escaped}", "value": "32768"},
            {"op": "add", "path": f"{path}/requests", "value": {memory: "32768"}},
        ]

    play("ascend", scenario)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_pod_without_devices_is_left_as_it_is_in_the_version_that_was_asked(version: str) -> None:
    async def scenario(life: Life) -> None:
        response = await life.extender.review(NVIDIA.pod("a", {"cpu": "1"}), version)
        expected = {"uid": "r-1", "allowed": True, "status": {"metadata": {}, "code": 200}}
        assert response == expected

    play("nvidia", scenario)


def test_pods_of_other_schedulers_are_left_alone() -> None:
    async def scenario(life: Life) -> None:
        response = await life.extender.review(changed(NVIDIA.pod("a"), schedulerName="volcano"))
        assert patch_of(response) == []
        assert response["status"]["message"] == "pod already has different scheduler assigned"

    play("nvidia", scenario)


def test_pods_that_name_the_default_scheduler_are_left_alone_where_that_is_asked_for() -> None:
    async def scenario(life: Life) -> None:
        assert (
            patch_of(await life.extender.review(changed(NVIDIA.pod("a"), schedulerName="default-scheduler")))
            == []
        )
        assert patch_of(await life.extender.review(NVIDIA.pod("a"))) != []

    play("nvidia", scenario, overwrites_default=False)


def _privileged() -> Json:
    pod = NVIDIA.pod("a")
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return pod


def _annotated(**annotations: str) -> Json:
    pod = NVIDIA.pod("a")
    pod["metadata"]["annotations"] = annotations
    return pod


@pytest.mark.parametrize(
    ("pod", "code", "said"),
    [
        (changed(NVIDIA.pod("a"), containers=[]), 403, "pod has no containers"),
        (_privileged(), 403, "container c0 is privileged"),
        (changed(NVIDIA.pod("a"), nodeName="n1"), 403, "pod has node assigned"),
        (
            NVIDIA.pod("a", {**GPU, "nvidia.com/gpumem-percentage": "101"}),
            500,
            "nvidia.com/gpumem-percentage must be between 0 and 100, got 101",
        ),
        (
            _annotated(**{NVIDIA.record: "x,NVIDIA,1,1:;"}),
            403,
            f"annotation {NVIDIA.record} is the scheduler's to write",
        ),
        (
            _annotated(**{NVIDIA.to_allocate: ";"}),
            403,
            f"annotation {NVIDIA.to_allocate} is the scheduler's to write",
        ),
    ],
)
def test_what_is_not_let_in(pod: Json, code: int, said: str) -> None:
    async def scenario(life: Life) -> None:
        response = await life.extender.review(pod)
        assert not response["allowed"]
        status = response["status"]
        assert (status["code"], status["message"]) == (code, said)
        assert status.get("reason", "") == ("Forbidden" if code == 403 else "")

    play("nvidia", scenario)


def test_quotas_are_kept() -> None:
    async def scenario(life: Life) -> None:
        hard = {"limits.nvidia.com/gpumem": "8000"}
        path = "/api/v1/namespaces/default/resourcequotas"
        await life.cluster.post(path, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        await life.filter(await life.admitted(NVIDIA.pod("a")))

        async def over() -> str:
            response = await life.extender.review(NVIDIA.pod("b"))
            return str(response["status"].get("message", ""))

        # Quotas have a watch of their own.
        for _ in range(200):
            if await over():
                break
        assert await over() == "exceeding resource quota"
        # What is over quota is no card's fault, and says so.
        small = NVIDIA.pod("c", {**GPU, "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "1"})
        await life.filter(await life.admitted(small))
        bypassed = await life.cluster.create(
            {**NVIDIA.pod("d"), "metadata": {"name": "d", "namespace": "default"}}
        )
        answer = await life.filter(bypassed)
        assert "ResourceQuotaNotFit" in answer["FailedNodes"]["n1"]

    play("nvidia", scenario, registers=True)


def test_an_amount_that_is_none_is_the_callers_mistake(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(life: Life) -> None:
        endpoints = life.extender.instance.process.endpoints
        assert endpoints is not None
        for amount, said in (
            ("9223372036854775808", "is beyond 2^63 - 1"),
            ("\x1b[2J", r"`\x1b[2J` is not a"),
        ):
            kind = {"group": "", "version": "v1", "kind": "Pod"}
            request = {
                "uid": "u",
                "kind": kind,
                "object": NVIDIA.pod("a", {**GPU, "nvidia.com/gpumem": amount}),
            }
            review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
            reply = await post(endpoints.port, "/webhook", review)
            assert (reply.status, said in reply.json["Error"]) == (400, True), reply
        assert not [record for record in caplog.records if record.exc_info]

    play("nvidia", scenario)

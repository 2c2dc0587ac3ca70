"""Kubelets, controllers, provisioners and collectors: what happens by itself in a sandbox."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.sandbox.talk import MERGE, PODS, Talk, binding, eventually, node, pod, talking

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}


def workload(name: str, replicas: int = 2) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}
    return {"metadata": {"name": name}, "spec": spec}


async def pods(talk: Talk) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await talk("GET", PODS))[1]["items"]
    return items


async def phase_is(talk: Talk, name: str, phase: str) -> bool:
    code, body = await talk("GET", f"{PODS}/{name}")
    return code == 200 and body["status"]["phase"] == phase


def test_a_bound_pod_runs_and_a_deleted_one_goes() -> None:
    async def run() -> None:
        async with talking(kubelets=True, start_seconds=0.01) as talk:
            await talk("POST", "/api/v1/nodes", node())
            await talk("POST", PODS, pod())
            assert (await talk("POST", f"{PODS}/a/binding", binding()))[0] == 201
            await eventually(lambda: phase_is(talk, "a", "Running"))
            _, body = await talk("GET", f"{PODS}/a")
            conditions = {item["type"]: item["status"] for item in body["status"]["conditions"]}
            assert conditions["Ready"] == conditions["PodScheduled"] == "True"
            assert body["status"]["podIP"].startswith("10.")
            _, deleted = await talk("DELETE", f"{PODS}/a")
            assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30

            async def is_gone() -> bool:
                return (await talk("GET", f"{PODS}/a"))[0] == 404

            await eventually(is_gone)

    asyncio.run(run())


def test_a_pod_on_a_missing_node_does_not_run() -> None:
    async def run() -> None:
        async with talking(kubelets=True, start_seconds=0) as talk:
            await talk("POST", PODS, pod())
            await talk("POST", f"{PODS}/a/binding", binding(target="nowhere"))
            await asyncio.sleep(0.05)
            assert await phase_is(talk, "a", "Pending")

    asyncio.run(run())


def test_kubelets_speak_for_nodes_that_nobody_speaks_for() -> None:
    async def run() -> None:
        async with talking(kubelets=True) as talk:
            await talk("POST", "/api/v1/nodes", node())
            other = node("n2")
            other["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
            await talk("POST", "/api/v1/nodes", other)
            _, found = await talk("GET", "/api/v1/nodes")
            ready = [item["status"]["conditions"][0]["status"] for item in found["items"]]
            assert ready == ["True", "False"]

    asyncio.run(run())


def test_pods_end_by_their_annotation_or_their_deadline() -> None:
    async def run() -> None:
        async with talking(kubelets=True, start_seconds=0) as talk:
            await talk("POST", "/api/v1/nodes", node())
            brief = pod("brief", nodeName="n1")
            brief["metadata"]["annotations"] = {"sandbox.kdsl/run-seconds": "0.05"}
            await talk("POST", PODS, brief)
            await talk("POST", PODS, pod("late", nodeName="n1", activeDeadlineSeconds=1))
            await eventually(lambda: phase_is(talk, "brief", "Succeeded"))
            await eventually(lambda: phase_is(talk, "late", "Failed"))
            _, body = await talk("GET", f"{PODS}/late")
            assert body["status"]["reason"] == "DeadlineExceeded"

    asyncio.run(run())


def test_a_deployment_keeps_its_pods() -> None:
    async def run() -> None:
        async with talking(controllers=True) as talk:
            assert (await talk("POST", f"{APPS}/deployments", workload("web")))[0] == 201

            async def has(count: int) -> bool:
                return len(await pods(talk)) == count

            await eventually(lambda: has(2))
            owner = (await pods(talk))[0]["metadata"]["ownerReferences"][0]
            assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
            scale = {"spec": {"replicas": 3}}
            code, scaled = await talk("PATCH", f"{APPS}/deployments/web/scale", scale, MERGE)
            assert (code, scaled["spec"]["replicas"]) == (200, 3)
            await eventually(lambda: has(3))
            name = (await pods(talk))[0]["metadata"]["name"]
            await talk("DELETE", f"{PODS}/{name}")
            await eventually(lambda: has(3))
            image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "img:2"}]}}}}
            await talk("PATCH", f"{APPS}/deployments/web", image, MERGE)

            async def is_new() -> bool:
                return (
                    sum(item["spec"]["containers"][0]["image"] == "img:2" for item in await pods(talk)) == 3
                )

            await eventually(is_new)
            await talk("DELETE", f"{APPS}/deployments/web", {"propagationPolicy": "Background"})
            await eventually(lambda: has(0))

    asyncio.run(run())


def test_pods_that_are_refused_are_told_as_an_event() -> None:
    async def run() -> None:
        async with talking(controllers=True) as talk:
            body = workload("bad", 1)
            body["spec"]["template"] = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "none"}}
            await talk("POST", f"{APPS}/replicasets", body)

            async def is_told() -> bool:
                _, events = await talk("GET", "/api/v1/namespaces/default/events")
                return any("no PriorityClass with name none" in item["message"] for item in events["items"])

            await eventually(is_told)

    asyncio.run(run())


def test_a_stateful_set_makes_one_pod_after_the_other() -> None:
    async def run() -> None:
        async with talking(kubelets=True, controllers=True, start_seconds=0) as talk:
            await talk("POST", "/api/v1/nodes", node())
            await talk("POST", f"{APPS}/statefulsets", {**workload("db"), "spec": workload("db")["spec"]})

            async def names() -> list[str]:
                return [item["metadata"]["name"] for item in await pods(talk)]

            async def has(wanted: list[str]) -> bool:
                return await names() == wanted

            await eventually(lambda: has(["db-0"]))
            await asyncio.sleep(0.1)
            assert await names() == ["db-0"]
            await talk("POST", f"{PODS}/db-0/binding", binding("db-0"))
            await eventually(lambda: has(["db-0", "db-1"]))

    asyncio.run(run())


def test_a_job_is_complete_when_its_pods_are() -> None:
    async def run() -> None:
        async with talking(kubelets=True, controllers=True, start_seconds=0, job_seconds=0.02) as talk:
            await talk("POST", "/api/v1/nodes", node())
            template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "nodeName": "n1"}}
            spec = {"completions": 3, "parallelism": 2, "template": template}
            await talk("POST", JOBS, {"metadata": {"name": "j"}, "spec": spec})

            async def is_complete() -> bool:
                _, job = await talk("GET", f"{JOBS}/j")
                return [item["type"] for item in job["status"].get("conditions", ())] == ["Complete"]

            await eventually(is_complete)
            assert (await talk("GET", f"{JOBS}/j"))[1]["status"]["succeeded"] == 3
            assert len(await pods(talk)) == 3

    asyncio.run(run())


def test_a_claim_waits_for_its_node_and_gets_a_volume() -> None:
    async def run() -> None:
        async with talking(controllers=True) as talk:
            kind = {"metadata": {"name": "w"}, "provisioner": "p.example.com"}
            kind["volumeBindingMode"] = "WaitForFirstConsumer"
            await talk("POST", "/apis/storage.k8s.io/v1/storageclasses", kind)
            claims = "/api/v1/namespaces/default/persistentvolumeclaims"
            request = {"requests": {"storage": "1Gi"}}
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "w", "resources": request}
            await talk("POST", claims, {"metadata": {"name": "c"}, "spec": spec})
            await asyncio.sleep(0.1)
            assert (await talk("GET", f"{claims}/c"))[1]["status"]["phase"] == "Pending"
            chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
            await talk("PATCH", f"{claims}/c", chosen, MERGE)

            async def is_bound() -> bool:
                return (await talk("GET", f"{claims}/c"))[1]["status"]["phase"] == "Bound"

            await eventually(is_bound)
            _, claim = await talk("GET", f"{claims}/c")
            _, volume = await talk("GET", f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
            assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
            terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            assert terms[0]["matchExpressions"][0]["values"] == ["n1"]

    asyncio.run(run())


def test_a_volume_that_names_a_claim_is_bound_to_it() -> None:
    async def run() -> None:
        async with talking(controllers=True) as talk:
            claims = "/api/v1/namespaces/default/persistentvolumeclaims"
            request = {"requests": {"storage": "1Gi"}}
            spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": request}
            await talk("POST", claims, {"metadata": {"name": "c"}, "spec": spec})
            volume = {
                "metadata": {"name": "v"},
                "spec": {
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/x"},
                    "claimRef": {"namespace": "default", "name": "c"},
                },
            }
            await talk("POST", "/api/v1/persistentvolumes", volume)

            async def is_bound() -> bool:
                status = (await talk("GET", f"{claims}/c"))[1]["status"]
                return bool(status.get("capacity") == {"storage": "2Gi"})

            await eventually(is_bound)

    asyncio.run(run())


def test_a_namespace_goes_with_what_is_in_it() -> None:
    async def run() -> None:
        async with talking(controllers=True) as talk:
            await talk("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}})
            await talk("POST", "/api/v1/namespaces/x/pods", pod())
            await talk("POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "c"}})
            await talk("DELETE", "/api/v1/namespaces/x")

            async def is_gone() -> bool:
                return (await talk("GET", "/api/v1/namespaces/x"))[0] == 404

            await eventually(is_gone)
            assert (await talk("GET", "/api/v1/pods"))[1]["items"] == []

    asyncio.run(run())


def test_budgets_count_healthy_pods() -> None:
    async def run() -> None:
        async with talking(controllers=True, kubelets=True, start_seconds=0) as talk:
            await talk("POST", "/api/v1/nodes", node())
            budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
            selector = {"matchLabels": {"app": "x"}}
            spec = {"minAvailable": "50%", "selector": selector}
            await talk("POST", budgets, {"metadata": {"name": "b"}, "spec": spec})
            for name in ("p1", "p2", "p3"):
                body = pod(name, nodeName="n1")
                body["metadata"]["labels"] = {"app": "x"}
                await talk("POST", PODS, body)

            async def allows() -> bool:
                status = (await talk("GET", f"{budgets}/b"))[1]["status"]
                return (status["currentHealthy"], status["disruptionsAllowed"]) == (3, 1)

            await eventually(allows)
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p1"}}
            assert (await talk("POST", f"{PODS}/p1/eviction", eviction))[0] == 201
            eviction["metadata"] = {"name": "p2"}
            assert (await talk("POST", f"{PODS}/p2/eviction", eviction))[0] == 429

    asyncio.run(run())

"""The words and numbers by which `kubectl get pods` tells how a pod is."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.sandbox.formats.pod_printer import pod_cells, pod_conditions


def pod(status: dict[str, Any], *, init: tuple[str, ...] = (), going: bool = False) -> dict[str, Any]:
    policies = {"sidecar": {"restartPolicy": "Always"}}
    metadata = {"name": "a", **({"deletionTimestamp": "2026-11-23T00:00:00Z"} if going else {})}
    containers = [{"name": name, **policies.get(name, {})} for name in init]
    spec: dict[str, Any] = {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": containers}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", **status}}


def one(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, **more}


RUNNING: dict[str, Any] = {"running": {}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}


@pytest.mark.parametrize(
    ("body", "ready", "word", "restarts"),
    [
        (pod({"phase": "Pending"}), "0/2", "Pending", "0"),
        (
            pod({"containerStatuses": [one("c", RUNNING, ready=True), one("d", {"waiting": {"reason": "CrashLoopBackOff"}})]}),
            "1/2", "CrashLoopBackOff", "0",
        ),
        (pod({"containerStatuses": [one("c", DONE), one("d", RUNNING, ready=True)]}), "1/2", "NotReady", "0"),
        (
            pod({"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [one("c", DONE), one("d", RUNNING, ready=True)]}),
            "1/2", "Running", "0",
        ),
        (pod({"containerStatuses": [one("c", {"terminated": {"exitCode": 2}})]}), "0/2", "ExitCode:2", "0"),
        (pod({"containerStatuses": [one("c", {"terminated": {"signal": 9}})]}), "0/2", "Signal:9", "0"),
        (
            pod({"containerStatuses": [one("c", RUNNING, ready=True, restartCount=3, lastState={"terminated": {"finishedAt": "T"}})]}),
            "1/2", "Running", "3 (5s ago)",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [one("i", DONE), one("j", RUNNING)]}, init=("i", "j")),
            "0/2", "Init:1/2", "0",
        ),
        (
            pod({"initContainerStatuses": [one("i", {"terminated": {"exitCode": 1, "reason": "Error"}}, restartCount=2)]}, init=("i",)),
            "0/2", "Init:Error", "2",
        ),
        (
            pod(
                {
                    "initContainerStatuses": [one("sidecar", RUNNING, ready=True, started=True, restartCount=1), one("i", DONE, restartCount=4)],
                    "containerStatuses": [one("c", RUNNING, ready=True)],
                },
                init=("sidecar", "i"),
            ),
            "2/3", "Running", "1",
        ),
        (pod({}, going=True), "0/2", "Terminating", "0"),
        (pod({"reason": "NodeLost"}, going=True), "0/2", "Unknown", "0"),
        (pod({"phase": "Failed", "reason": "Evicted"}, going=True), "0/2", "Evicted", "0"),
    ],
)  # fmt: skip
def test_how_a_pod_is(body: dict[str, Any], ready: str, word: str, restarts: str) -> None:
    assert pod_cells(body, "1s", lambda stamp: "5s")[1:4] == [ready, word, restarts]


def test_gates_that_are_held_and_rows_of_pods_that_have_ended() -> None:
    body = pod({"phase": "Succeeded", "conditions": [{"type": "g", "status": "True"}]})
    body["spec"]["readinessGates"] = [{"conditionType": "g"}, {"conditionType": "h"}]
    assert pod_cells(body, "1s", str)[-1] == "1/2"
    [condition] = pod_conditions(body)
    assert (condition["type"], condition["reason"]) == ("Completed", "Succeeded")
    assert pod_conditions(pod({})) == []

"""Requests of kdsl beside those recorded of kube-scheduler in the same situation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kdsl.cycle.decision import Condition, Decision, Outcome
from kdsl.live.http.messages import HttpAnswer, HttpRequest
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing.api import Api
from kdsl.live.writing.evictions import Eviction, Evictions, PlannedPreemption
from kdsl.live.writing.recorder import EventRecorder
from kdsl.live.writing.reporter import Reporter
from kdsl.live.writing.status_writer import StatusWriter
from msgspec.structs import replace

from tests.live.idle import until_idle
from tests.live.recorded import SCHEDULER, Pods, scenarios
from tests.live.timeless import OK, LoopClock, Script, run, status

SCENARIOS = {each["name"]: each for each in scenarios()}
PREEMPTIONS = [
    name
    for name in SCENARIOS
    if name.startswith(("preemption", "nominat", "metrics-run")) and name != "preemption-delete-fails"
]
"""In that one an attempt ends with the deletion: tests of evictions have that."""
pytestmark = pytest.mark.skipif(not SCENARIOS, reason=f"{SCHEDULER} is not there")


def requests(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry["request"] for entry in scenario["timeline"] if "request" in entry]


def about(request: dict[str, Any], pod: str) -> str:
    """Return the kind of a request about a pod; empty for none."""
    body = request.get("body") or {}
    if request["path"].endswith((f"/pods/{pod}/status", f"/pods/{pod}")):
        return f"{request['method']} {request['path']}"
    if isinstance(body, dict) and body.get("regarding", {}).get("name") == pod:
        return f"{body['reason']} {body['note']}"
    return ""


def recorded_for(scenario: dict[str, Any], pod: str) -> list[str]:
    found = [about(request, pod) for request in requests(scenario)]
    return [line for line in found if line]


def sent_for(script: Script, pod: str) -> list[str]:
    found = []
    for _, request in script.sent:
        body = json.loads(request.body) if request.body else None
        found.append(about({"method": request.method, "path": request.path, "body": body}, pod))
    return [line for line in found if line]


def victims_of(scenario: dict[str, Any]) -> dict[str, tuple[LivePod, str, str]]:
    """The pods that were preempted, as they were known before, with the preemptor's uid and the node."""
    pods = Pods()
    told: dict[str, LivePod] = {}
    found: dict[str, tuple[LivePod, str, str]] = {}
    for entry in scenario["timeline"]:
        if "driver" in entry:
            pods.drive(entry)
            continue
        request = entry.get("request", {})
        body = request.get("body")
        if not isinstance(body, dict):
            continue
        if "DisruptionTarget" in json.dumps(body):
            pod = pods.at(request["path"])
            told[pod.info.name] = pod
        if body.get("reason") == "Preempted":
            name, words = body["regarding"]["name"], body["note"].split()
            found[name] = (told[name], words[3], words[6])
        pods.answered(request, entry["response"])
    return found


def playing(script: Script, scene: Callable[[Api, EventRecorder], Awaitable[None]]) -> None:
    async def go() -> None:
        api = Api(script)
        recorder = EventRecorder(api, LoopClock())
        recorder.start()
        await scene(api, recorder)
        while not recorder.is_idle:
            await asyncio.sleep(0.1)
        await recorder.close()

    run(go())


@pytest.mark.parametrize("name", PREEMPTIONS)
def test_each_victim_is_written_to_as_recorded(name: str) -> None:
    for pod, preemptor, node in victims_of(SCENARIOS[name]).values():
        script = Script()
        text = "default-scheduler: preempting to accommodate a higher priority pod"
        why = Condition("DisruptionTarget", "True", "PreemptionByScheduler", text)
        by = replace(pod.info, name="by", uid=preemptor)
        done = PlannedPreemption(by, node, "default-scheduler", (Eviction(pod, why),))

        async def scene(api: Api, recorder: EventRecorder, done: PlannedPreemption = done) -> None:
            evictions = Evictions(api, recorder, Reporter("h"), LoopClock(), lambda preemption, problem: None)
            evictions.start()
            evictions.submit(done)
            await asyncio.sleep(1)

        playing(script, scene)
        expected = [
            line
            for line in recorded_for(SCENARIOS[name], pod.info.name)
            if not line.startswith(("Scheduled", "FailedScheduling"))
        ]
        assert sent_for(script, pod.info.name) == expected
        assert len(expected) == 3


def test_preemptions_were_recorded() -> None:
    assert sum(len(victims_of(SCENARIOS[name])) for name in PREEMPTIONS) >= 8


def failures(scenario: dict[str, Any], name: str) -> list[tuple[LivePod, str]]:
    """Every attempt that failed, with the pod as it was known: those that only a series tells of, too."""
    pods, found = Pods(), []
    for entry in scenario["timeline"]:
        if "driver" in entry:
            pods.drive(entry)
        request = entry.get("request", {})
        body = request.get("body") or {}
        if body.get("reason") == "FailedScheduling" and body["regarding"]["name"] == name:
            (pod,) = [pod for (_, known), pod in pods.known.items() if known == name]
            found.append((replace(pod, version=body["regarding"]["resourceVersion"]), body["note"]))
        elif "series" in body:
            found.append(found[-1])
        if isinstance(body, dict) and body:
            pods.answered(request, entry["response"])
    return found


def test_attempts_with_the_same_end_are_recorded_as_a_series() -> None:
    scenario = SCENARIOS["unschedulable-twice"]
    script, reporter = Script(), Reporter("h")
    attempts = failures(scenario, "a")
    third = attempts[2]
    attempts = [*attempts[:3], third, third, *attempts[3:]]  # which were only counted

    async def scene(api: Api, recorder: EventRecorder) -> None:
        for pod, note in attempts:
            decision = Decision(pod.info.key, "default-scheduler", Outcome.UNSCHEDULABLE, message=note)
            report = reporter.failed(decision, pod, "")
            assert report is not None
            recorder.record(report.event)
            await asyncio.sleep(9)

    playing(script, scene)
    expected = [
        (each["method"], (each["body"].get("series") or {}).get("count"))
        for each in requests(scenario)
        if "/events" in each["path"] and each["body"].get("reason") != "Scheduled"
    ]
    assert len(expected) == 4
    assert [
        (request.method, json.loads(request.body).get("series", {}).get("count"))
        for _, request in script.sent
    ] == expected


def test_a_status_patch_that_fails_is_repeated_as_recorded() -> None:
    scenario = SCENARIOS["status-patch-fails"]
    attempts = failures(scenario, "a") + failures(scenario, "b")
    refused = {"a": [500], "b": [409]}

    def answer(request: HttpRequest) -> HttpAnswer:
        codes = refused[request.path.split("/")[-2]]
        return status(codes.pop(), "made by the recorder") if codes else OK

    script = Script(answer)

    async def go() -> None:
        writer = StatusWriter(Api(script), LoopClock())
        writer.start()
        for pod, note in attempts:
            decision = Decision(pod.info.key, "default-scheduler", Outcome.UNSCHEDULABLE, message=note)
            report = Reporter("h").failed(decision, pod, "")
            assert report is not None
            assert report.wish is not None
            writer.submit(pod, report.wish)
            assert await until_idle(5, writer)
        await writer.close()

    run(go())
    expected = [
        (each["path"], each["body"]["status"]["conditions"][0]["message"])
        for each in requests(scenario)
        if each["path"].endswith("/status")
    ]
    found = [
        (request.path, json.loads(request.body)["status"]["conditions"][0]["message"])
        for _, request in script.sent
    ]
    assert found == expected
    assert len(expected) == 4

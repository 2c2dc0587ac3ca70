"""The bodies of requests are those that kube-scheduler was recorded to send for the same facts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from kdsl.cycle.decision import Condition, Decision, Outcome
from kdsl.live.watching.changes import LivePod
from kdsl.live.writing import bodies
from kdsl.live.writing.conditions import StatusWish, patch_for
from kdsl.live.writing.events import Event, EventsApi
from kdsl.live.writing.reporter import Reporter
from msgspec.structs import replace

from tests.live.recorded import SCHEDULER, Pods, plain, scenarios

SCENARIOS = [each for each in scenarios() if each["name"] != "thousand-pods"]
"""That one holds numbers of requests, and no pods."""
FALSE = {"bind-conflict", "bind-no-answer", "pod-replaced-before-binding-variant"}
"""Where kube-scheduler says of a pod that is bound that it is not. kdsl does not."""
REPORTER = Reporter("<host>")
pytestmark = pytest.mark.skipif(not SCENARIOS, reason=f"{SCHEDULER} is not there")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_bodies_are_those_of_kube_scheduler(scenario: dict[str, Any]) -> None:
    pods = Pods()
    is_false = False
    for entry in scenario["timeline"]:
        if "driver" in entry:
            pods.drive(entry)
        elif "request" in entry and isinstance(entry["request"].get("body"), dict):
            request = entry["request"]
            if _says_unbound(request) and pods.at(request["path"]).info.node_name:
                is_false = True
                continue
            made = _made(pods, request)
            if made is not None:
                assert plain(json.loads(made)) == plain(_expected(request, pods))
            pods.answered(request, entry["response"])
    assert is_false == (scenario["name"] in FALSE)


def test_every_kind_of_body_is_compared() -> None:
    kinds = {"binding": 0, "status": 0, "event": 0, "series": 0, "delete": 0}
    for scenario in SCENARIOS:
        for entry in scenario["timeline"]:
            request = entry.get("request")
            if request and isinstance(request.get("body"), dict):
                kind = _kind(request)
                if kind in kinds:
                    kinds[kind] += 1
    assert min(kinds.values()) >= 2
    assert kinds["status"] > 60
    assert kinds["event"] > 150


@pytest.mark.parametrize("name", ["volume-wffc-static", "volume-wffc-dynamic", "volume-wffc-rejected"])
def test_volumes_and_claims_are_put_as_kube_scheduler_puts_them(name: str) -> None:
    (scenario,) = [each for each in SCENARIOS if each["name"] == name]
    puts = [each["request"]["body"] for each in scenario["timeline"] if _is_put(each)]
    assert puts
    for put in puts:
        before = json.loads(json.dumps(put))
        del before["metadata"]["annotations"]
        if put["kind"] == "PersistentVolume":
            reference = before["spec"].pop("claimRef")
            names = ("namespace", "name", "uid", "resourceVersion")
            claim = {"metadata": {key: reference[key] for key in names}}
            assert bodies.set_aside(before, claim) == put
        else:
            assert bodies.selected(before, "n1") == put


def _says_unbound(request: dict[str, Any]) -> bool:
    conditions = request["body"].get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" for each in conditions)


def _is_put(entry: dict[str, Any]) -> bool:
    return "PUT" in entry.get("request", {}).values()


def _kind(request: dict[str, Any]) -> str:
    path, body = request["path"], request["body"]
    if path.endswith("/binding"):
        return "binding"
    if re.search(r"/pods/[^/]+/status$", path):
        return "status"
    if request["method"] == "DELETE":
        return "delete"
    if "/events" in path:
        return "series" if "series" in body else "event"
    return "other"


def _made(pods: Pods, request: dict[str, Any]) -> bytes | None:
    """Return the request of kdsl for one of kube-scheduler; None where another test compares it."""
    body = request["body"]
    match _kind(request):
        case "binding":
            pod = pods.at(request["path"])
            return bodies.binding(replace(pod.info, uid=body["metadata"]["uid"]), body["target"]["name"])
        case "status":
            return _status(pods.at(request["path"]), body)
        case "delete":
            return bodies.delete_options(pods.at(request["path"]).info.uid)
        case "series":
            made = json.loads(bodies.series_patch(body["series"]["count"], 0, EventsApi.EVENTS))
            made["series"]["lastObservedTime"] = "<time>"
            return json.dumps(made).encode()
        case "event" if "regarding" in body:
            event = _event(body, pods)
            made = json.loads(bodies.event(event, "", 0, EventsApi.EVENTS))
            made["metadata"]["name"] = f"{event.regarding.name}.<gen>"
            made["eventTime"] = "<time>"
            return json.dumps(made).encode()
    return None


def _status(pod: LivePod, body: dict[str, Any]) -> bytes | None:
    """The patch for what the recorded one comes to, on the pod as the watch knew it."""
    patch = body["status"]
    condition = None
    for each in patch.get("conditions", ()):
        before = next((known for known in pod.conditions if known.type == each["type"]), None)
        condition = Condition(
            each["type"],
            each.get("status") or (before.status if before else ""),
            each.get("reason") or (before.reason if before else ""),
            each["message"],
        )
    nominated = (patch["nominatedNodeName"] or "") if "nominatedNodeName" in patch else None
    return patch_for(pod, StatusWish(condition, nominated), "<time>")


def _event(body: dict[str, Any], pods: Pods) -> Event:
    about = body["regarding"]
    info = replace(
        pods.known[about["namespace"], about["name"]].info,
        uid=about["uid"],
        scheduler_name=body["reportingController"],
    )
    pod = LivePod(info, about["resourceVersion"])
    profile, note = body["reportingController"], body["note"]
    if body["reason"] == "Scheduled":
        return REPORTER.placed(pod, note.rpartition(" ")[2], profile)
    if body["reason"] == "Preempted":
        by, node = re.fullmatch(r"Preempted by pod (\S+) on node (\S+)", note).groups()  # type: ignore[union-attr]
        return REPORTER.preempted(pod, replace(info, uid=by), node, profile)
    outcome = Outcome.ERROR if note.startswith("running ") else Outcome.UNSCHEDULABLE
    report = REPORTER.failed(Decision(info.key, profile, outcome, message=note), pod, "")
    assert report is not None
    return report.event


def _expected(request: dict[str, Any], pods: Pods) -> dict[str, Any]:
    """Return the recorded request with the uid of the pod: kdsl writes to no other pod of this name."""
    kind, body = _kind(request), request["body"]
    if kind == "status":
        return {**body, "metadata": {"uid": pods.at(request["path"]).info.uid}}
    if kind == "delete":
        return {**body, "preconditions": {"uid": pods.at(request["path"]).info.uid}}
    return dict(body)

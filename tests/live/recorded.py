"""The recorded conversations of kube-scheduler, and what a watch would have known of the pods in them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.watching.changes import LivePod, PodCondition
from msgspec.structs import replace

from tests.conformance import SHARED

SCHEDULER = SHARED / "conformance" / "live" / "scheduler.jsonl.gz"
_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/status|/binding)?$")
_PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods$")
_PLACEHOLDER = re.compile(r"<(time|gen|host):?\d*>")


def scenarios() -> list[dict[str, Any]]:
    if not SCHEDULER.exists():
        return []
    with gzip.open(SCHEDULER, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def plain(body: Any) -> Any:
    """A body without what differs between any two runs: times, random ends of names, the host."""
    return json.loads(_PLACEHOLDER.sub(r"<\1>", json.dumps(body)))


@dataclass
class Pods:
    """The pods of a scenario, as its entries made them, by namespace and name."""

    known: dict[tuple[str, str], LivePod] = field(default_factory=dict)

    def at(self, path: str) -> LivePod:
        match = _POD.match(path)
        assert match is not None
        return self.known[match[1], match[2]]

    def drive(self, entry: dict[str, Any]) -> None:
        """Follow what the driver did."""
        done, answer = entry["driver"], entry["response"]
        body = done.get("body") or {}
        created = _PODS.match(done["path"])
        if created and done["method"] == "POST" and answer["status"] == 201:
            meta = body["metadata"]
            scheduler = body["spec"].get("schedulerName", "default-scheduler")
            info = PodInfo(meta["name"], created[1], answer["uid"], scheduler_name=scheduler)
            generation = 1
            gated = body["spec"].get("schedulingGates")
            gate = PodCondition("PodScheduled", "False", "SchedulingGated", "m") if gated else None
            known = LivePod(info, answer["resourceVersion"], generation, (gate,) if gate else ())
            self.known[created[1], meta["name"]] = known
        elif done["path"].endswith("/binding") and answer["status"] == 201:
            self.answered(done, answer)
        elif _POD.match(done["path"]) and answer.get("uid") and done["method"] == "PATCH":
            pod = self.at(done["path"])
            pod = replace(pod, version=answer["resourceVersion"])
            self._put(_with_status(pod, body.get("status") or {}))

    def answered(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Follow what the scheduler did."""
        match = _POD.match(request["path"])
        if match is None or (match[1], match[2]) not in self.known:
            return
        code = answer.get("upstream_status", answer["status"])
        pod = self.known[match[1], match[2]]
        if match[3] == "/binding" and code == 201:
            info = replace(pod.info, node_name=request["body"]["target"]["name"], nominated_node_name="")
            bound = PodCondition("PodScheduled", "True", last_transition_time="<time>")
            self._put(replace(pod, info=info, conditions=(bound,)))
        elif match[3] == "/status" and code == 200:
            self._put(_with_status(pod, request["body"]["status"]))

    def _put(self, pod: LivePod) -> None:
        self.known[pod.info.namespace, pod.info.name] = pod


def _with_status(pod: LivePod, status: dict[str, Any]) -> LivePod:
    """The pod after a patch of its status."""
    if "nominatedNodeName" in status:
        info = replace(pod.info, nominated_node_name=status["nominatedNodeName"] or "")
        pod = replace(pod, info=info)
    for patch in status.get("conditions", ()):
        pod = replace(pod, conditions=tuple(_merged(pod.conditions, patch)))
    return pod


def _merged(conditions: tuple[PodCondition, ...], patch: dict[str, Any]) -> Iterator[PodCondition]:
    names = {
        "status": "status",
        "reason": "reason",
        "message": "message",
        "lastTransitionTime": "last_transition_time",
        "observedGeneration": "observed_generation",
    }
    fields = {names[key]: value for key, value in patch.items() if key in names}
    found = False
    for each in conditions:
        if each.type == patch["type"]:
            found = True
            each = replace(each, **fields)
        yield each
    if not found:
        yield PodCondition(patch["type"], **fields)

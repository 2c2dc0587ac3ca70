"""An API server in memory, as far as a scheduler needs one: it answers as `spec/live.md` says, and can be told to fail.

It is the `Sender` of what is tested. Every change is kept, in order, so that a test can deliver it as a watch
would: at once, later, twice or not at all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.watching.changes import ObjectChange, Verb
from kdsl.live.watching.decode import ObjectDecoder
from kdsl.live.watching.resources import RESOURCES

Json = dict[str, Any]
_DECODERS = {name: ObjectDecoder(RESOURCES[name]) for name in RESOURCES}


@dataclass
class Fault:
    """A fault of the next matching requests: an answer, or no answer, with or without doing the request.

    `delay` are seconds before the server looks at the request. It is used up after `times`.
    """

    method: str = ""
    ends: str = ""
    times: int = 1
    delay: float = 0.0
    status: int = 0
    message: str = "injected"
    is_lost: bool = False
    is_done: bool = True

    def fits(self, request: HttpRequest) -> bool:
        return self.times > 0 and self.method in ("", request.method) and request.path.endswith(self.ends)


@dataclass
class ClusterApi:
    """The objects by resource and key, and what was asked."""

    objects: dict[str, dict[str, Json]] = field(default_factory=lambda: {name: {} for name in RESOURCES})
    requests: list[HttpRequest] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    listeners: list[Callable[[ObjectChange], None]] = field(default_factory=list)
    bound: list[tuple[str, str]] = field(default_factory=list)
    """Every binding that was carried out, by uid and node."""
    is_away: bool = False
    version: int = 100
    uids: int = 0

    # ---- what others do ----------------------------------------------------------------------------------

    def create(self, resource: str, thing: Json) -> Json:
        thing = deepcopy(thing)
        meta = thing["metadata"]
        self.uids += 1
        meta.setdefault("uid", f"uid-{self.uids}")
        key = key_of(meta)
        assert key not in self.objects[resource], f"{key} is there already"
        self.objects[resource][key] = thing
        return self._changed(resource, key)

    def change(self, resource: str, key: str, edit: Callable[[Json], object]) -> Json:
        edit(self.objects[resource][key])
        return self._changed(resource, key)

    def remove(self, resource: str, key: str) -> None:
        thing = self.objects[resource].pop(key)
        self.version += 1
        self._tell(Verb.DROP, resource, key, thing)

    def node_of(self, key: str) -> str:
        return str(self.objects["pods"][key]["spec"].get("nodeName", ""))

    def condition(self, key: str, kind: str = "PodScheduled") -> Json:
        conditions = self.objects["pods"][key].get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def sent(self, method: str, ends: str) -> list[HttpRequest]:
        return [one for one in self.requests if one.method == method and one.path.endswith(ends)]

    def changes_of_all(self) -> list[ObjectChange]:
        """Return the changes of a first list."""
        return [
            change_of(Verb.PUT, resource, thing)
            for resource in ("nodes", *(name for name in self.objects if name != "nodes"))
            for thing in self.objects[resource].values()
        ]

    # ---- what is asked -----------------------------------------------------------------------------------

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        self.requests.append(request)
        fault = next((one for one in self.faults if one.fits(request)), None)
        await asyncio.sleep(0.001)
        if fault is not None:
            fault.times -= 1
            if fault.delay:
                await asyncio.sleep(fault.delay)
        if self.is_away:
            raise NoAnswerError("connection refused", may_be_done=False)
        if fault is not None and fault.status:
            return _status(fault.status, "", fault.message)
        if fault is not None and fault.is_lost:
            if fault.is_done:
                self._answer(request)
            raise NoAnswerError("connection reset", may_be_done=True)
        return self._answer(request)

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        parts = request.path.split("/")
        body = json.loads(request.body) if request.body else {}
        if "events" in parts:
            self.events.append(body)
            return _ok(body, 201)
        if parts[-1] == "binding":
            return self._bind(f"{parts[4]}/{parts[6]}", body)
        if len(parts) > 4 and parts[3] == "namespaces":
            resource, key, rest = parts[5], f"{parts[4]}/{parts[6]}", parts[7:]
        else:
            resource, key, rest = parts[3], parts[4], parts[5:]
        thing = self.objects.get(resource, {}).get(key)
        if thing is None:
            return _status(404, "NotFound", f'{resource} "{key.rpartition("/")[2]}" not found')
        match request.method:
            case "GET":
                return _ok(thing)
            case "PATCH":
                return self._patch(resource, key, body, bool(rest))
            case "DELETE":
                return self._delete(key, body)
            case "PUT":
                self.objects[resource][key] = body
                return _ok(self._changed(resource, key))
        return _status(405, "MethodNotAllowed", "not here")

    def _bind(self, key: str, body: Json) -> HttpAnswer:
        pod = self.objects["pods"].get(key)
        name = key.partition("/")[2]
        if pod is None:
            return _status(404, "NotFound", f'pods "{name}" not found')
        uid = body["metadata"].get("uid")
        if uid and uid != pod["metadata"]["uid"]:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            return _status(409, "Conflict", f'Operation cannot be fulfilled on pods "{name}": {text}')
        refusal = f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} '
        if pod["metadata"].get("deletionTimestamp"):
            return _status(409, "Conflict", f"{refusal}is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            return _status(
                409, "Conflict", f'{refusal}is already assigned to node "{pod["spec"]["nodeName"]}"'
            )
        node = body["target"]["name"]
        pod["spec"]["nodeName"] = node
        status = pod.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _merge_conditions(status, [{"type": "PodScheduled", "status": "True"}], replaces=True)
        self.bound.append((pod["metadata"]["uid"], node))
        self._changed("pods", key)
        return HttpAnswer(201, b'{"kind":"Status","status":"Success"}')

    def _patch(self, resource: str, key: str, body: Json, is_status: bool) -> HttpAnswer:
        thing = self.objects[resource][key]
        meta = body.get("metadata", {})
        if meta.get("uid", thing["metadata"]["uid"]) != thing["metadata"]["uid"]:
            return _status(409, "Conflict", "Precondition failed: UID in precondition: other")
        version = meta.get("resourceVersion")
        if version and version != thing["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        if is_status:
            return self._patch_status(key, body.get("status", {}))
        annotations = thing["metadata"].setdefault("annotations", {})
        for name, value in meta.get("annotations", {}).items():
            annotations.pop(name, None) if value is None else annotations.update({name: value})
        return _ok(self._changed(resource, key))

    def _patch_status(self, key: str, patch: Json) -> HttpAnswer:
        pod = self.objects["pods"][key]
        status = pod.setdefault("status", {})
        if patch.get("nominatedNodeName") and pod["spec"].get("nodeName"):
            return _status(422, "Invalid", "status.nominatedNodeName: Forbidden: may not be set")
        before = deepcopy(status)
        if "nominatedNodeName" in patch:
            status.pop("nominatedNodeName", None)
            if patch["nominatedNodeName"]:
                status["nominatedNodeName"] = patch["nominatedNodeName"]
        _merge_conditions(status, patch.get("conditions", []))
        return _ok(pod if before == status else self._changed("pods", key))

    def _delete(self, key: str, options: Json) -> HttpAnswer:
        pod = self.objects["pods"][key]
        uid = options.get("preconditions", {}).get("uid")
        if uid and uid != pod["metadata"]["uid"]:
            return _status(409, "Conflict", "Precondition failed: UID in precondition: other")
        if pod["spec"].get("nodeName"):
            pod["metadata"].setdefault("deletionTimestamp", "2026-11-23T03:28:03Z")
            return _ok(self._changed("pods", key))
        self.remove("pods", key)
        return _ok(pod)

    def _changed(self, resource: str, key: str) -> Json:
        self.version += 1
        thing = self.objects[resource][key]
        thing["metadata"]["resourceVersion"] = str(self.version)
        self._tell(Verb.PUT, resource, key, thing)
        return thing

    def _tell(self, verb: Verb, resource: str, key: str, thing: Json) -> None:
        change = change_of(verb, resource, thing)
        for listener in self.listeners:
            listener(change)


def change_of(verb: Verb, resource: str, thing: Json) -> ObjectChange:
    """The change that a reflector makes of an object."""
    raw = json.dumps(thing).encode()
    decoder = _DECODERS[resource]
    identity = decoder.identify(raw)
    return ObjectChange(
        verb, resource, identity.key, identity.uid, identity.version, decoder.decode(raw, identity)
    )


def key_of(meta: Json) -> str:
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _merge_conditions(status: Json, new: list[Json], *, replaces: bool = False) -> None:
    conditions = status.setdefault("conditions", [])
    for one in new:
        known = next((each for each in conditions if each["type"] == one["type"]), None)
        if known is None:
            conditions.append(known := {})
        elif replaces:
            known.clear()
        known.update(one)


def _ok(thing: Json, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status, json.dumps({"kind": "Thing", **thing}).encode())


def _status(code: int, reason: str, message: str) -> HttpAnswer:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return HttpAnswer(code, json.dumps(body).encode())


# ---- objects -----------------------------------------------------------------------------------------------


def node(name: str, cpu: int = 4, **fields: Any) -> Json:
    """A node with room for `cpu` CPUs."""
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": fields,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: int = 1, on: str = "", priority: int = 0, **fields: Any) -> Json:
    """A pod that asks for `cpu` CPUs."""
    made: Json = {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-11-23T03:00:00Z"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}],
            "schedulerName": "default-scheduler",
            "priority": priority,
            **fields,
        },
        "status": {"phase": "Pending"},
    }
    if on:
        made["spec"]["nodeName"] = on
    return made

"""Binding of pods to nodes: the one write that a scheduler lives by."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.call import Call, Reply, World
from kdsl.sandbox.errors import ApiError, Json, bad_request, conflict, not_found, precondition, status
from kdsl.sandbox.objects_in import read_part
from kdsl.sandbox.resources import PODS
from kdsl.sandbox.store import Version

_BOUND: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'


def bind(world: World, call: Call) -> Reply:
    """Answer a POST of a Binding, to the pod's subresource or to the collection `bindings`."""
    binding = read_part(call, "Binding")
    metadata = binding["metadata"]
    name = metadata.get("name", "")
    if call.subresource and name != call.name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target", {})
    if target.get("kind", "Node") not in ("Node", ""):
        supported = 'supported values: "Node", "<empty>"'
        message = f'target.kind: Unsupported value: "{target["kind"]}": {supported}'
        raise ApiError(status(500, message), 500)
    if not target.get("name"):
        raise ApiError(status(500, "target.name: Required value"), 500)
    version = world.store.get(PODS, (call.namespace, name))
    if version is None:
        raise not_found(PODS, name)
    _check_preconditions(version, metadata)
    bind_version(world, version, target["name"], metadata)
    return Reply(201, _BOUND)


def _check_preconditions(version: Version, metadata: Json) -> None:
    uid, number = metadata.get("uid", ""), metadata.get("resourceVersion", "")
    if uid and uid != version.uid:
        raise precondition(PODS, version.key, "UID", uid, version.uid)
    if number and number != str(version.number):
        raise precondition(PODS, version.key, "ResourceVersion", number, str(version.number))


def bind_version(world: World, version: Version, node: str, metadata: Json) -> Version:
    """Bind a pod; 409 where its state does not allow it. Labels and annotations are merged into the pod's."""
    body = version.body()
    spec, name = body["spec"], version.key[1]
    if "deletionTimestamp" in body["metadata"]:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    for part in ("labels", "annotations"):
        if metadata.get(part):
            body["metadata"].setdefault(part, {}).update(metadata[part])
    spec["nodeName"] = node
    status_now = body["status"]
    status_now.pop("nominatedNodeName", None)
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": world.chance.stamp(),
    }
    set_condition(status_now, condition)
    return world.store.write(PODS, version.key, body)


def set_condition(status_now: Json, condition: Json) -> None:
    """Put a condition in the place of the one of its type, or at the end."""
    conditions = status_now.setdefault("conditions", [])
    for index, present in enumerate(conditions):
        if present["type"] == condition["type"]:
            conditions[index] = condition
            return
    conditions.append(condition)


def _refused(name: str, why: str) -> ApiError:
    return conflict(PODS, name, why, "pods/binding")

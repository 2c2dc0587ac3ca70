"""Binding of pods to nodes: the essential write of a scheduler."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.model.errors import ApiError, Json, bad_request, conflict, not_found, precondition, status
from kdsl.sandbox.model.resources import NODES, PODS
from kdsl.sandbox.model.store import Version
from kdsl.sandbox.requests.call import Call, Reply, SandboxState
from kdsl.sandbox.requests.objects_in import read_part
from kdsl.sandbox.requests.parameters import write_options

_PLACES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_BOUND: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'


def bind(world: SandboxState, call: Call) -> Reply:
    """Answer a POST of a Binding, to the pod's subresource or to the collection `bindings`."""
    options = write_options(call, "CreateOptions")
    binding = read_part(call, "Binding")
    metadata = binding["metadata"]
    if metadata.get("namespace", call.namespace) != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not call.subresource:
        metadata.pop("uid", None)  # a new object has none, and for the collection this is a new object
    name = metadata.get("name", "")
    if call.subresource and name != call.name:
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(binding.get("target", {}))
    version = world.store.get(PODS, (call.namespace, name))
    if version is None:
        raise not_found(PODS, name)
    _check_preconditions(version, metadata)
    bind_version(world, version, binding["target"]["name"], metadata, is_dry=options.is_dry)
    return Reply(201, _BOUND)


def _check_target(target: Json) -> None:
    wrong: list[str] = []
    if target.get("kind", "Node") not in ("Node", ""):
        supported = 'supported values: "Node", "<empty>"'
        wrong.append(f'target.kind: Unsupported value: "{target["kind"]}": {supported}')
    if not target.get("name"):
        wrong.append("target.name: Required value")
    if wrong:
        message = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        raise ApiError(status(500, message), 500)


def _check_preconditions(version: Version, metadata: Json) -> None:
    uid, number = metadata.get("uid", ""), metadata.get("resourceVersion", "")
    if uid and uid != version.uid:
        raise precondition(PODS, version.key, "UID", uid, version.uid)
    if number and number != str(version.number):
        raise precondition(PODS, version.key, "ResourceVersion", number, str(version.number))


def bind_version(
    world: SandboxState, version: Version, node: str, metadata: Json, *, is_dry: bool = False
) -> None:
    """Bind a pod, or with `is_dry` only check that; raises 409 where its state does not allow it."""
    body = _bound(world, version, node, metadata)
    if not is_dry:
        world.store.write(PODS, version.key, body)


def _bound(world: SandboxState, version: Version, node: str, metadata: Json) -> Json:
    """Return the bound form of a pod; raises 409 where its state does not allow it.

    Labels and annotations are merged into the pod's, and so are the labels of the node's zone and region.
    """
    body = version.body()
    spec, name = body["spec"], version.key[1]
    if "deletionTimestamp" in body["metadata"]:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    given = {**metadata, "labels": {**metadata.get("labels", {}), **_places(world, node)}}
    for part in ("labels", "annotations"):
        if given.get(part):
            body["metadata"].setdefault(part, {}).update(given[part])
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
    return body


def _places(world: SandboxState, node: str) -> Json:
    """Return the labels that admission copies from a node; empty where it does not exist."""
    version = world.store.get(NODES, ("", node))
    labels = {} if version is None else version.labels
    return {name: labels[name] for name in _PLACES if name in labels}


def is_ready(pod: Json) -> bool:
    """Return whether a pod has the condition Ready."""
    conditions = pod["status"].get("conditions", ())
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def set_condition(status_now: Json, condition: Json) -> None:
    """Replace the condition of the same type, or append it."""
    conditions = status_now.setdefault("conditions", [])
    for index, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            conditions[index] = condition
            return
    conditions.append(condition)


def _refused(name: str, why: str) -> ApiError:
    return conflict(PODS, name, why, "pods/binding")

"""The subresource `scale` of workloads."""

from __future__ import annotations

from kdsl.sandbox.formats.decoding import parse_body
from kdsl.sandbox.formats.json_patch import apply_json_patch, merge_json
from kdsl.sandbox.model.errors import STALE, Json, bad_request, conflict, not_found
from kdsl.sandbox.model.store import Version
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, document
from kdsl.sandbox.requests.objects_in import read_part
from kdsl.sandbox.requests.parameters import WriteOptions
from kdsl.sandbox.requests.updating import change


def scale(world: SandboxState, call: Call) -> Reply:
    """Answer a GET, PUT or PATCH of a workload's scale."""
    old = world.store.get(call.resource, call.key)
    if old is None:
        raise not_found(call.resource, call.name)
    if call.verb == "get":
        return document(_scale(old), 200, call.form.media)
    wanted = read_part(call, "Scale") if call.verb == "update" else _patched(call, _scale(old))
    number = wanted.get("metadata", {}).get("resourceVersion", "")
    if number not in ("", str(old.number)):
        raise conflict(call.resource, call.name, STALE)
    replicas = wanted.get("spec", {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        raise bad_request("spec.replicas must be a number of at least 0")
    body = old.body()
    body["spec"]["replicas"] = replicas
    whole_call = Call(call.user, call.method, call.path, call.verb, call.resource, call.namespace, call.name)
    change(world, whole_call, old, body, WriteOptions())
    return document(_scale(world.store.get(call.resource, call.key) or old), 200, call.form.media)


def _patched(call: Call, present: Json) -> Json:
    value, _ = parse_body(call.body, False, "Scale", False)
    if isinstance(value, list):
        return apply_json_patch(present, value)
    if not isinstance(value, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    return merge_json(present, value)


def _scale(version: Version) -> Json:
    body = version.body()
    metadata = body["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = body["spec"].get("selector", {}).get("matchLabels", {})
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": body["spec"].get("replicas", 1)},
        "status": {
            "replicas": body.get("status", {}).get("replicas", 0),
            "selector": ",".join(f"{name}={value}" for name, value in sorted(labels.items())),
        },
    }

"""DELETE of objects and of collections: grace periods, finalizers, preconditions."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.formats.selectors import read_selection
from kdsl.sandbox.model.errors import ApiError, Json, details, not_found, status, success
from kdsl.sandbox.model.resources import PODS, Resource
from kdsl.sandbox.model.store import Version, encode
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, document, whole_body
from kdsl.sandbox.requests.parameters import DeleteOptions, delete_options

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_PROPAGATION_FINALIZERS: Final = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}


def delete(world: SandboxState, call: Call) -> Reply:
    """Answer a DELETE of one object."""
    options = delete_options(call)
    resource = call.resource
    version = world.store.get(resource, call.key)
    if version is None:
        raise not_found(resource, call.name)
    shown, is_gone = delete_version(world, resource, version, options)
    if is_gone and not resource.returns_deleted:
        found = {**details(resource, call.name), "uid": version.uid}
        return document(success(details=found), 200, call.form.media)
    return document(whole_body(resource, shown), 200, call.form.media)


def delete_collection(world: SandboxState, call: Call) -> Reply:
    """Answer a DELETE of a collection: it deletes the selected objects."""
    options = delete_options(call)
    resource = call.resource
    selection = read_selection(resource, call.namespace, call.query)
    versions = [
        version
        for version in world.store.collection(resource).sorted_versions(call.namespace)
        if selection.matches(version)
    ]
    for version in versions:
        delete_version(world, resource, version, options)
    items = b",".join(version.data for version in versions)
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
    metadata = encode({"resourceVersion": str(world.store.number)})
    return Reply(200, head + metadata + b',"items":[' + items + b"]}")


def delete_version(
    world: SandboxState, resource: Resource, version: Version, options: DeleteOptions
) -> tuple[Json, bool]:
    """Delete an object, or begin to; return the state to show and whether it is gone."""
    body = version.body()
    _check_preconditions(resource, version, options)
    if resource is PODS:
        return _delete_pod(world, version, body, options)
    metadata = body["metadata"]
    finalizer = _PROPAGATION_FINALIZERS.get(options.policy)
    if finalizer and finalizer not in metadata.get("finalizers", ()) and "deletionTimestamp" not in metadata:
        metadata["finalizers"] = [*metadata.get("finalizers", ()), finalizer]
    is_namespace = resource.plural == "namespaces"
    held = metadata.get("finalizers") or (is_namespace and body.get("spec", {}).get("finalizers"))
    if not held:
        return _remove(world, resource, version, body, options), True
    if "deletionTimestamp" in metadata:
        return body, False
    metadata["deletionTimestamp"] = world.chance.stamp()
    if is_namespace:
        body["status"]["phase"] = "Terminating"
    else:
        metadata["deletionGracePeriodSeconds"] = 0
    if "generation" in metadata:
        metadata["generation"] += 1
    if not options.is_dry:
        world.store.write(resource, version.key, body)
    return body, False


def _remove(
    world: SandboxState, resource: Resource, version: Version, body: Json, options: DeleteOptions
) -> Json:
    if not options.is_dry:
        world.remove(resource, version, body)
    return body


def _check_preconditions(resource: Resource, version: Version, options: DeleteOptions) -> None:
    if options.uid and options.uid != version.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({version.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif options.version and options.version != str(version.number):
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion "
            f"in record ({version.number}). The object might have been modified"
        )
    else:
        return
    message = f'Operation cannot be fulfilled on {resource.kind} "{version.key[1]}": {why}'
    found = details(resource, version.key[1], resource.kind)
    raise ApiError(status(409, message, "Conflict", found), 409)


def _delete_pod(
    world: SandboxState, version: Version, body: Json, options: DeleteOptions
) -> tuple[Json, bool]:
    metadata = body["metadata"]
    grace = _grace(body, options)
    present = metadata.get("deletionGracePeriodSeconds")
    if present is not None and grace >= present and not (grace == 0 and not metadata.get("finalizers")):
        return body, False
    if present is None:
        metadata["generation"] = metadata.get("generation", 1) + 1
    metadata["deletionTimestamp"] = world.chance.stamp(grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if options.is_dry:
        return body, False
    if present != grace:
        version = world.store.write(PODS, version.key, body)
    if grace > 0 or metadata.get("finalizers"):
        return body, False
    world.remove(PODS, version, body)
    return body, True


def _grace(body: Json, options: DeleteOptions) -> int:
    if not body["spec"].get("nodeName") or body["status"].get("phase") in _ENDED:
        return 0
    grace = options.grace
    if grace is None:
        grace = body["spec"].get("terminationGracePeriodSeconds", 30)
    return grace if grace >= 0 else 1

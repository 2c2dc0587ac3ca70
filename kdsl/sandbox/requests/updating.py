"""Changes of existing objects: the common part of PUT and all patches."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.model.errors import (
    STALE,
    Causes,
    Json,
    bad_request,
    conflict,
    invalid,
    not_found,
    precondition,
)
from kdsl.sandbox.model.resources import PODS, Resource
from kdsl.sandbox.model.store import Version
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, document, whole, whole_body
from kdsl.sandbox.requests.creating import create_object, refused
from kdsl.sandbox.requests.objects_in import read_object
from kdsl.sandbox.requests.parameters import WriteOptions, write_options
from kdsl.sandbox.rules.admission import add_tolerations, admit_global_default
from kdsl.sandbox.rules.defaults import apply_defaults
from kdsl.sandbox.rules.update_rules import check_update

_KEPT: Final = (
    "name", "namespace", "generateName", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "generation",
)  # fmt: skip


def update(world: SandboxState, call: Call) -> Reply:
    """Answer a PUT of an object, or of its status, or of its finalizers."""
    options = write_options(call, "UpdateOptions")
    body, warnings = read_object(call, options.is_strict, options.validation)
    resource, metadata = call.resource, body["metadata"]
    name = metadata.setdefault("name", call.name)
    if name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    old = world.store.get(resource, call.key)
    if old is None:
        if resource.is_created_by_put and not call.subresource:
            return create_object(world, call, body, options, warnings)
        raise not_found(resource, call.name)
    if metadata.get("uid", old.uid) != old.uid:
        raise precondition(resource, call.key, "UID", metadata["uid"], old.uid)
    if resource.needs_version and not metadata.get("resourceVersion"):
        causes = Causes()
        causes.invalid("metadata.resourceVersion", "0", "must be specified for an update")
        raise invalid(resource.group, resource.plural, call.name, causes)
    return change(world, call, old, body, options, warnings)


def change(
    world: SandboxState,
    call: Call,
    old: Version,
    body: Json,
    options: WriteOptions,
    warnings: tuple[str, ...] = (),
) -> Reply:
    """Replace an object by `body`, as far as the path allows it, and return the reply with the result."""
    resource, before = call.resource, old.body()
    wanted = body["metadata"].get("resourceVersion", "")
    if wanted not in ("", str(old.number)):
        raise conflict(resource, call.name, STALE)
    new = _limited(before, body, call.subresource, resource)
    given = before["metadata"] if call.subresource == "resize" else body["metadata"]
    new["metadata"] = _metadata(before["metadata"], given)
    _admit(world, resource, before, new)
    apply_defaults(resource, new)
    causes = check_update(resource, before, new, call.subresource)
    if causes.found:
        raise refused(resource, call.name, causes)
    reply = _settle(world, call, old, before, new, options)
    reply.warnings = warnings
    return reply


def _settle(
    world: SandboxState, call: Call, old: Version, before: Json, new: Json, options: WriteOptions
) -> Reply:
    resource, media = call.resource, call.form.media
    if new == before:
        return (
            Reply(200, whole(resource, old))
            if media != "application/yaml"
            else document(whole_body(resource, before), 200, media)
        )
    if resource.has_generation and _without_status(new) != _without_status(before):
        new["metadata"]["generation"] = before["metadata"].get("generation", 1) + 1
    if is_over(resource, new):
        shown = whole_body(resource, dict(new, metadata=dict(new["metadata"])))
        if not options.is_dry:
            world.remove(resource, old, new)
        return document(shown, 200, media)
    if options.is_dry or media != "application/json":
        if not options.is_dry:
            world.store.write(resource, call.key, new)
        return document(whole_body(resource, new), 200, media)
    return Reply(200, whole(resource, world.store.write(resource, call.key, new)))


def _limited(before: Json, body: Json, subresource: str, resource: Resource) -> Json:
    """Return the new object with the parts of the old one that this path does not change."""
    if subresource == "status":
        return {**before, "status": body.get("status", {})}
    if subresource == "finalize":
        spec = {name: value for name, value in before.get("spec", {}).items() if name != "finalizers"}
        finalizers = body.get("spec", {}).get("finalizers")
        return {**before, "spec": {**spec, "finalizers": finalizers} if finalizers else spec}
    if subresource == "ephemeralcontainers":
        added = body.get("spec", {}).get("ephemeralContainers", [])
        return {**before, "spec": {**before["spec"], "ephemeralContainers": added}}
    if subresource == "resize":
        return {**before, "spec": _resized(before["spec"], body.get("spec", {}))}
    new = dict(body)
    if resource.subresource("status") is not None:
        new.pop("status", None)
        if "status" in before:
            new["status"] = before["status"]
    if resource.plural == "namespaces" and "spec" in before:
        new["spec"] = before["spec"]
    return new


def _resized(before: Json, given: Json) -> Json:
    """Return a pod's spec with other resources of its containers, and of the pod itself; all else stays."""
    spec = dict(before)
    for listed in ("containers", "initContainers"):
        present = before.get(listed, [])
        wanted = {item.get("name"): item for item in (*present, *given.get(listed, ()))}
        if present:
            spec[listed] = [_with_resources(item, wanted[item["name"]]) for item in present]
    return _with_resources(spec, given)


def _with_resources(before: Json, given: Json) -> Json:
    found = dict(before)
    for name in ("resources", "resizePolicy"):
        found.pop(name, None)
        if name in given:
            found[name] = given[name]
    return found


def _metadata(before: Json, given: Json) -> Json:
    metadata = {name: value for name, value in given.items() if name not in ("managedFields", "selfLink")}
    for name in _KEPT:
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]
    metadata.setdefault("uid", before["uid"])
    metadata["resourceVersion"] = before["resourceVersion"]
    return metadata


def _admit(world: SandboxState, resource: Resource, before: Json, new: Json) -> None:
    if resource is PODS:
        spec = new.setdefault("spec", {})
        for name in ("priority", "preemptionPolicy"):
            if name in before["spec"]:
                spec.setdefault(name, before["spec"][name])
        new["status"].setdefault("qosClass", before["status"].get("qosClass", ""))
        add_tolerations(spec)
    elif resource.plural == "priorityclasses":
        admit_global_default(world.store, resource, new)
    elif resource.plural == "persistentvolumes":
        status, was = new.setdefault("status", {}), before["status"]
        moved = status.get("phase") != was.get("phase")
        stamp = world.chance.stamp() if moved else was.get("lastPhaseTransitionTime", "")
        status["lastPhaseTransitionTime"] = stamp


def _without_status(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("status", "metadata")}


def is_over(resource: Resource, body: Json) -> bool:
    """Return whether an object is being deleted and no finalizer or grace period holds it any longer."""
    metadata = body["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if resource.plural == "namespaces":
        return not body.get("spec", {}).get("finalizers")
    return bool(metadata.get("deletionGracePeriodSeconds", 0) == 0)

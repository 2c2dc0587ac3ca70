"""POST of new objects."""

from __future__ import annotations

import ipaddress
from typing import Final

from kdsl.sandbox.model.errors import ApiError, Causes, Json, bad_request, exists, invalid
from kdsl.sandbox.model.resources import PODS, SERVICES, Resource
from kdsl.sandbox.model.store import Version, in_order
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, document, whole, whole_body
from kdsl.sandbox.requests.objects_in import read_object
from kdsl.sandbox.requests.parameters import WriteOptions, write_options
from kdsl.sandbox.rules.admission import admit_create, admit_namespace, finish_pod, pod_warnings
from kdsl.sandbox.rules.defaults import apply_defaults
from kdsl.sandbox.rules.validation import check_object

_SERVER_FIELDS: Final = (
    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
    "managedFields",
)  # fmt: skip
_MOST_GIVEN: Final = 58
"""The most characters of a prefix that a completed name keeps."""
_ADDRESSES: Final = ipaddress.IPv4Network("10.96.0.0/12")
"""The addresses of Services inside of the cluster. No process listens there."""
_FIRST_ADDRESS: Final = 10
"""The first address for a Service that names none: the ones below are for well-known Services."""


def create(world: SandboxState, call: Call) -> Reply:
    """Answer a POST to a collection."""
    options = write_options(call, "CreateOptions")
    body, warnings = read_object(call, options.is_strict, options.validation)
    if call.resource.is_namespaced:
        given = body["metadata"].get("namespace", "")
        if given and given != call.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
    return create_object(world, call, body, options, warnings)


def create_object(
    world: SandboxState, call: Call, body: Json, options: WriteOptions, warnings: tuple[str, ...] = ()
) -> Reply:
    """Store an object that was read from a request, and return the reply with it."""
    resource = call.resource
    complete(world, resource, call.namespace, body)
    if resource is PODS:
        warnings = (*warnings, *pod_warnings(body["spec"]))
    if options.is_dry:
        body["metadata"] = in_order(body["metadata"])
        reply = document(whole_body(resource, body), 201, call.form.media)
    else:
        reply = Reply(201, whole(resource, _store(world, resource, body)))
    reply.warnings = warnings
    return reply


def add(world: SandboxState, resource: Resource, body: Json) -> Version:
    """Create an object for a controller of the sandbox, with the full admission.

    Raises ApiError as for a request.
    """
    complete(world, resource, body["metadata"].get("namespace", ""), body)
    return _store(world, resource, body)


def complete(world: SandboxState, resource: Resource, namespace: str, body: Json) -> None:
    """Add the server's fields to a new object; raises ApiError where it is rejected."""
    _set_metadata(world, resource, namespace, body)
    name = body["metadata"].get("name", "")
    admit_namespace(world.store, resource, namespace, name)
    if resource.subresource("status") is not None and not resource.keeps_status:
        body.pop("status", None)
    apply_defaults(resource, body)
    admit_create(world.store, resource, body)
    if resource is PODS:
        finish_pod(body, world.chance)
    elif resource is SERVICES:
        give_address(world, body)
    elif resource.plural == "persistentvolumes":
        body["status"]["lastPhaseTransitionTime"] = world.chance.stamp()
    causes = check_object(resource, body)
    if causes.found:
        raise refused(resource, name, causes)
    if world.store.get(resource, (namespace, name)) is not None:
        raise exists(resource, name)


def refused(resource: Resource, name: str, causes: Causes) -> ApiError:
    """Return the error for an invalid object; events are named without their group."""
    group = "" if resource.plural == "events" else resource.group
    return invalid(group, resource.kind, name, causes)


def _set_metadata(world: SandboxState, resource: Resource, namespace: str, body: Json) -> None:
    metadata = body["metadata"]
    if metadata.pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for name in _SERVER_FIELDS:
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_MOST_GIVEN] + world.chance.suffix()
    if resource.is_namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = world.chance.uid()
    metadata["creationTimestamp"] = world.chance.stamp()
    if resource.has_generation:
        metadata["generation"] = 1


def _store(world: SandboxState, resource: Resource, body: Json) -> Version:
    metadata = body["metadata"]
    return world.store.write(resource, (metadata.get("namespace", ""), metadata["name"]), body)


def give_address(world: SandboxState, body: Json) -> None:
    """Give a new Service an unused address, if it wants one."""
    spec = body["spec"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP"):
        return
    used = {item["spec"].get("clusterIP") for item in world.store.bodies(SERVICES)}
    addresses = (str(_ADDRESSES[number]) for number in range(_FIRST_ADDRESS, _ADDRESSES.num_addresses))
    spec["clusterIP"] = next(address for address in addresses if address not in used)
    spec["clusterIPs"] = [spec["clusterIP"]]

"""PATCH in its four forms: JSON patch, merge patch, strategic merge patch, server-side apply."""

from __future__ import annotations

import json
from typing import Final

import yaml

from kdsl.sandbox.formats.apply import Path, merge_applied, require_manager
from kdsl.sandbox.formats.decoding import parse_patch
from kdsl.sandbox.formats.json_patch import apply_json_patch, merge_json
from kdsl.sandbox.formats.strategic import merge_strategic
from kdsl.sandbox.model.errors import ApiError, Causes, Json, bad_request, invalid, not_found, status
from kdsl.sandbox.requests.call import Call, Reply, SandboxState, whole_body
from kdsl.sandbox.requests.creating import create_object
from kdsl.sandbox.requests.objects_in import conform, judge
from kdsl.sandbox.requests.parameters import WriteOptions, is_apply, write_options
from kdsl.sandbox.requests.updating import change

_JSON_PATCH: Final = "application/json-patch+json"
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_OBJECT: Final = "map[string]interface {}"


def patch(world: SandboxState, call: Call) -> Reply:
    """Answer a PATCH of an object or its status."""
    media = call.content_type.partition(";")[0].strip()
    if media not in (_JSON_PATCH, _MERGE, _STRATEGIC) and not is_apply(call):
        raise ApiError(status(415, "415: Unsupported Media Type", "UnsupportedMediaType", {}), 415)
    options = write_options(call, "PatchOptions")
    if is_apply(call):
        return _apply(world, call, options)
    old = world.store.get(call.resource, call.key)
    if old is None:
        raise not_found(call.resource, call.name)
    present = whole_body(call.resource, old.body())
    if media == _JSON_PATCH:
        patched = apply_json_patch(present, parse_patch(call.body, list, "[]interface {}"))
    elif media == _MERGE:
        patched = merge_json(present, parse_patch(call.body, dict, _OBJECT))
    else:
        patched = merge_strategic(present, _strategic(call.body))
    body, complaints = conform(call.resource, patched)
    warnings: tuple[str, ...] = ()
    if complaints:
        if options.is_strict:
            raise _strict(patched, complaints)
        warnings = judge(call.resource.kind, "v1", complaints, False, options.validation)
    _check_identity(call, body["metadata"])
    return change(world, call, old, body, options, warnings)


def _check_identity(call: Call, metadata: Json) -> None:
    """Reject a patch of the object's name or namespace."""
    if metadata.get("namespace", call.namespace) != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = metadata.get("name", "")
    if name != call.name:
        causes = Causes()
        causes.invalid("metadata.name", json.dumps(name), "field is immutable")
        causes.twice()
        raise invalid(call.resource.group, call.resource.kind, name, causes)


def _strategic(data: bytes) -> Json:
    try:
        return parse_patch(data, dict, _OBJECT)  # type: ignore[no-any-return]
    except ApiError as error:
        # For this kind of patch the server adds nothing to the decoder's text.
        raise bad_request(str(error).removeprefix("error decoding patch: ")) from None


def _strict(patched: Json, complaints: list[str]) -> ApiError:
    shown = json.dumps(dict(sorted(patched.items())), separators=(",", ":"), ensure_ascii=False)
    causes = Causes()
    causes.invalid("patch", json.dumps(shown), f"strict decoding error: {', '.join(complaints)}")
    return invalid("", "", "", causes)


def _apply(world: SandboxState, call: Call, options: WriteOptions) -> Reply:
    require_manager(options.manager)
    try:
        value = yaml.safe_load(call.body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(value, dict):
        raise bad_request("error decoding YAML: an applied configuration is an object")
    resource = call.resource
    applied, complaints = conform(resource, value)
    warnings = judge(resource.kind, resource.version, complaints, options.is_strict, options.validation)
    old = world.store.get(resource, call.key)
    owned: dict[str, frozenset[Path]]
    if old is None:
        if call.subresource:
            raise not_found(resource, call.name)
        applied["metadata"]["name"] = call.name
        owned = {}
        merged = merge_applied({}, applied, owned, options.manager, True)
        reply = create_object(world, call, merged, options, warnings)
        created = world.store.get(resource, call.key)
        if created is not None:
            world.owners.by_uid[created.uid] = owned
        return reply
    owned = dict(world.owners.by_uid.get(old.uid, {}))
    merged = merge_applied(old.body(), applied, owned, options.manager, options.is_forced)
    body, _ = conform(resource, whole_body(resource, merged))
    reply = change(world, call, old, body, options, warnings)
    if not options.is_dry:
        world.owners.by_uid[old.uid] = owned
    return reply

"""GET of objects and lists: pages, resourceVersions, and the forms of an answer."""

from __future__ import annotations

import base64
import binascii
from asyncio import sleep
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from kdsl.sandbox.formats.selectors import Selection, read_selection
from kdsl.sandbox.model.errors import ApiError, Json, bad_request, not_found, status, too_large_version
from kdsl.sandbox.model.events_form import from_core, is_converted
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.store import Collection, Version, encode
from kdsl.sandbox.requests.call import (
    YAML_TYPE,
    AnswerForm,
    Call,
    Reply,
    SandboxState,
    document,
    whole,
    whole_body,
)
from kdsl.sandbox.requests.parameters import check_list_options, number, version_number
from kdsl.sandbox.requests.tables import partial, table

FUTURE_SECONDS: Final = 3.0
"""The time that the server waits for a resourceVersion that it has not reached."""

_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)
_NOW: Final = -1


@dataclass(frozen=True, slots=True)
class _Token:
    """The place where a list continues: after a key, in the state of a number (`_NOW`: of the present)."""

    number: int
    key: tuple[str, str]


async def get(world: SandboxState, call: Call) -> Reply:
    """Answer a GET of one object."""
    await _reach(world, call.query.get("resourceVersion", ""))
    version = world.store.get(call.resource, call.key)
    if version is None:
        raise not_found(call.resource, call.name)
    form = call.form
    if form.shape == "Table":
        include = call.query.get("includeObject", "Metadata")
        found = table(world, call.resource, [version], form, include, str(version.number))
        return document(found)
    if form.shape:
        return document(partial(call.resource, version, form.version))
    if form.media == YAML_TYPE:
        return document(whole_body(call.resource, version.body()), 200, form.media)
    return Reply(200, whole(call.resource, version))


async def list_objects(world: SandboxState, call: Call) -> Reply:
    """Answer a GET of a collection."""
    query, resource = call.query, call.resource
    check_list_options(query, False)
    limit, wanted = number(query, "limit"), query.get("resourceVersion", "")
    number(query, "timeoutSeconds")
    selection = read_selection(resource, call.namespace, query)
    collection = world.store.collection(resource)
    if query.get("continue"):
        if wanted not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _read_token(query["continue"])
        at = world.store.number if token.number == _NOW else token.number
        versions = _state(collection, call.namespace, at, token)
        versions = [version for version in versions if version.key > token.key]
    else:
        await _reach(world, wanted)
        at = _exact(query, wanted, limit) or world.store.number
        versions = _state(collection, call.namespace, at, None)
        if wanted == "0":
            limit = 0
    if not selection.is_all:
        versions = [version for version in versions if selection.matches(version)]
    metadata: Json = {"resourceVersion": str(at)}
    if 0 < limit < len(versions):
        _add_token(metadata, at, versions, limit, selection)
        versions = versions[:limit]
    return _render(world, call, versions, metadata)


def _exact(query: Mapping[str, str], wanted: str, limit: int) -> int:
    """Return the number that a list must show exactly; 0 for the present."""
    match = query.get("resourceVersionMatch", "")
    is_exact = match == "Exact" or (not match and limit > 0 and wanted not in ("", "0"))
    return version_number(wanted, False) if is_exact else 0


async def _reach(world: SandboxState, wanted: str) -> None:
    if not wanted or wanted == "0":
        return
    number_wanted = version_number(wanted, False)
    if number_wanted > world.store.number:
        await sleep(FUTURE_SECONDS)
        if number_wanted > world.store.number:
            body = too_large_version(number_wanted, world.store.number)
            raise ApiError(body, 504, {"retry-after": "1"})


def _state(collection: Collection, namespace: str, at: int, token: _Token | None) -> list[Version]:
    is_present = not collection.history or collection.history[-1].number <= at
    if is_present and at >= collection.compacted:
        return collection.sorted_versions(namespace)
    versions = collection.state_at(at, namespace)
    if versions is not None:
        return versions
    if token is None:
        raise ApiError(status(410, _TOO_OLD, "Expired"), 410)
    metadata = {"continue": _write_token(_NOW, token.key)}
    raise ApiError(status(410, _TOKEN_TOO_OLD, "Expired", metadata=metadata), 410)


def _add_token(metadata: Json, at: int, versions: list[Version], limit: int, selection: Selection) -> None:
    metadata["continue"] = _write_token(at, versions[limit - 1].key)
    if selection.is_all:
        metadata["remainingItemCount"] = len(versions) - limit


def _write_token(at: int, key: tuple[str, str]) -> str:
    text = encode({"v": "meta.k8s.io/v1", "rv": at, "start": list(key)})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
    try:
        value = msgspec.json.decode(data)
        namespace, name = value["start"]
        return _Token(int(value["rv"]), (str(namespace), str(name)))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        first = chr(data[0]) if data else ""
        shown = first if first.isascii() and first.isprintable() else f"\\u{ord(first or chr(0)):04x}"
        why = f"invalid character '{shown}' looking for beginning of value"
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from None


def _render(world: SandboxState, call: Call, versions: list[Version], metadata: Json) -> Reply:
    resource, form = call.resource, call.form
    if form.shape == "Table":
        include = call.query.get("includeObject", "Metadata")
        found = table(world, resource, versions, form, include, metadata["resourceVersion"])
        found["metadata"] = metadata
        return document(found)
    if form.shape:
        return document(_partial_list(resource, versions, form, metadata))
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
    if is_converted(resource):
        items = b",".join(encode(from_core(version.body())) for version in versions)
    else:
        items = b",".join([version.data for version in versions])
    body = b"".join((head, encode(metadata), b',"items":[', items, b"]}"))
    if form.media == YAML_TYPE:
        return document(msgspec.json.decode(body), 200, form.media)
    return Reply(200, body)


def _partial_list(resource: Resource, versions: list[Version], form: AnswerForm, metadata: Json) -> Json:
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata,
        "items": [partial(resource, version, form.version) for version in versions] or None,
    }

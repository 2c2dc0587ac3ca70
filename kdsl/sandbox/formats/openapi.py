"""OpenAPI documents in the extent that kubectl reads: the fields of kinds, and field validation of writes.

It requests the v2 document when it makes Lists, in protobuf (gnostic's `openapi.v2.Document`); other clients
get the same as JSON.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Final

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import GROUP_VERSIONS, RESOURCES, VIRTUAL, Resource
from kdsl.sandbox.model.schema import JsonShape, Node, schema_of
from kdsl.sandbox.model.store import encode

_PLAIN: Final[dict[JsonShape, Json]] = {
    JsonShape.STRING: {"type": "string"},
    JsonShape.INTEGER: {"type": "integer", "format": "int64"},
    JsonShape.BOOLEAN: {"type": "boolean"},
    JsonShape.NUMBER: {"type": "number"},
    JsonShape.TIME: {"type": "string", "format": "date-time"},
    JsonShape.MICRO_TIME: {"type": "string", "format": "date-time"},
    JsonShape.QUANTITY: {"type": "string"},
    JsonShape.QUANTITIES: {"type": "object", "additionalProperties": {"type": "string"}},
    JsonShape.STRINGS: {"type": "object", "additionalProperties": {"type": "string"}},
    JsonShape.MAP: {"type": "object"},
    JsonShape.ANY: {},
}


INFO: Final = {"title": "kdsl sandbox", "version": "v1.36.0"}
IDENTITY: Final = "x-kubernetes-group-version-kind"
"""The key of the group, version and kind of an operation or schema."""
PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
"""The parameters of writes."""
V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@cache
def index() -> Json:
    """Return `/openapi/v3`: the paths of the documents, each with its digest."""
    paths: Json = {}
    for group, version in GROUP_VERSIONS:
        digest = hashlib.sha256(schema_document(_path(group, version)) or b"").hexdigest()[:32].upper()
        path = _path(group, version)
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


@cache
def schema_document(path: str) -> bytes | None:
    """Return the document of one group's version, encoded; None for an unknown one."""
    found = [item for item in RESOURCES if _path(item.group, item.version) == path]
    if not found:
        return None
    schemas: Json = {}
    paths: Json = {}
    for resource in found:
        name = f"io.k8s.api.{resource.group.split('.')[0] or 'core'}.{resource.version}.{resource.kind}"
        schemas[name] = {
            **_schema(schema_of(resource)),
            IDENTITY: [identity(resource)],
        }
        if resource.plural not in VIRTUAL:
            paths[object_path(resource)] = {"patch": _operation("patch", resource)}
            paths[_collection_path(resource)] = {"post": _operation("post", resource)}
    return encode({"openapi": "3.0.0", "info": INFO, "paths": paths, "components": {"schemas": schemas}})


def _collection_path(resource: Resource) -> str:
    inner = "/namespaces/{namespace}" if resource.is_namespaced else ""
    return f"/{_path(resource.group, resource.version)}{inner}/{resource.plural}"


def object_path(resource: Resource) -> str:
    """Return the path of the objects of a resource, with their names in braces."""
    return f"{_collection_path(resource)}/{{name}}"


def identity(resource: Resource) -> Json:
    """Return the group, version and kind of a resource."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operation(action: str, resource: Resource) -> Json:
    schema = {"type": "string", "uniqueItems": True}
    parameters: list[Json] = [{"name": name, "in": "query", "schema": schema} for name in PARAMETERS]
    return {
        "operationId": f"{action}{resource.kind}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        IDENTITY: identity(resource),
    }


def _schema(node: Node) -> Any:
    if node.shape is JsonShape.STRUCT:
        properties = {name: _schema(item) for name, item in node.fields.items()}
        return {"type": "object", "properties": properties}
    if node.shape is JsonShape.LIST:
        return {"type": "array", "items": _schema(node.item) if node.item else {}}
    return _PLAIN[node.shape]


def wants_protobuf(accept: str) -> bool:
    """Return whether a client wants the v2 document in protobuf."""
    return "proto-openapi.spec.v2" in accept


@cache
def v2_json() -> bytes:
    """Return the v2 document as JSON."""
    paths: Json = {}
    for path, resource in _patched():
        parameters = [{"name": name, "in": "query", "type": "string"} for name in PARAMETERS]
        responses = {"200": {"description": "OK"}}
        patch = {"parameters": parameters, "responses": responses, IDENTITY: identity(resource)}
        paths[path] = {"patch": patch}
    return encode({"swagger": "2.0", "info": INFO, "paths": paths})


@cache
def v2_protobuf() -> bytes:
    """Return the v2 document in protobuf. The numbers are the field numbers of its messages."""
    info = _text(1, INFO["title"]) + _text(2, INFO["version"])
    paths = b"".join(
        _part(2, _text(1, path) + _part(2, _part(8, _operation_v2(resource))))
        for path, resource in _patched()
    )
    return _text(1, "2.0") + _part(2, info) + _part(8, paths)


def _patched() -> list[tuple[str, Resource]]:
    return [(object_path(item), item) for item in RESOURCES if item.plural not in VIRTUAL]


def _operation_v2(resource: Resource) -> bytes:
    parameters = b"".join(
        _part(8, _part(1, _part(2, _part(3, _text(2, "query") + _text(4, name) + _text(6, "string")))))
        for name in PARAMETERS
    )
    words = "".join(f'{name}: "{value}"\n' for name, value in sorted(identity(resource).items()))
    return parameters + _part(13, _text(1, IDENTITY) + _part(2, _text(2, words)))


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))

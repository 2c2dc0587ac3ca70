"""The OpenAPI v2 document, which kubectl requests when it makes Lists: it states that patches validate
fields.

kubectl requests it in protobuf (gnostic's `openapi.v2.Document`); other clients get the same as JSON.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kdsl.sandbox.errors import Json
from kdsl.sandbox.openapi import IDENTITY, INFO, PARAMETERS, identity, object_path
from kdsl.sandbox.resources import RESOURCES, VIRTUAL, Resource
from kdsl.sandbox.store import encode

MEDIA: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def wants_protobuf(accept: str) -> bool:
    """Return whether a client wants the document in protobuf."""
    return "proto-openapi.spec.v2" in accept


@cache
def as_json() -> bytes:
    """Return the document as JSON."""
    paths: Json = {}
    for path, resource in _paths():
        parameters = [{"name": name, "in": "query", "type": "string"} for name in PARAMETERS]
        responses = {"200": {"description": "OK"}}
        patch = {"parameters": parameters, "responses": responses, IDENTITY: identity(resource)}
        paths[path] = {"patch": patch}
    return encode({"swagger": "2.0", "info": INFO, "paths": paths})


@cache
def as_protobuf() -> bytes:
    """Return the document in protobuf. The numbers are the field numbers of its messages."""
    info = _text(1, INFO["title"]) + _text(2, INFO["version"])
    paths = b"".join(
        _part(2, _text(1, path) + _part(2, _part(8, _operation(resource)))) for path, resource in _paths()
    )
    return _text(1, "2.0") + _part(2, info) + _part(8, paths)


def _paths() -> list[tuple[str, Resource]]:
    return [(object_path(item), item) for item in RESOURCES if item.plural not in VIRTUAL]


def _operation(resource: Resource) -> bytes:
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

"""JSON merge patches (RFC 7386) and JSON patches (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any, Final

from kdsl.sandbox.model.errors import ApiError, Json, bad_request, status

_MAX_OPERATIONS: Final = 10_000


def merge_json(old: Json, patch: Json) -> Json:
    """Return an object with a merge patch applied; neither is changed."""
    found = dict(old)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            before = found.get(name)
            found[name] = merge_json(before if isinstance(before, dict) else {}, value)
        else:
            found[name] = value
    return found


def apply_json_patch(old: Json, patch: Any) -> Json:
    """Return an object with a JSON patch applied; 422 where an operation does not fit."""
    if not isinstance(patch, list) or not all(isinstance(item, dict) for item in patch):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(patch) > _MAX_OPERATIONS:
        raise bad_request(f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}")
    found: Any = copy.deepcopy(old)
    try:
        for operation in patch:
            found = _apply(found, operation)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        message = "the server rejected our request due to an error in our request"
        raise ApiError(status(422, message, "Invalid", {}), 422) from None
    if not isinstance(found, dict):
        raise bad_request("a JSON patch may not replace the whole object by another kind of value")
    return found


def _apply(document: Any, operation: Json) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "test":
        if _read(document, path) != operation.get("value"):
            raise ValueError("a test failed")
        return document
    if kind == "remove":
        return _remove(document, path)
    if kind == "replace":
        return _add(_remove(document, path), path, operation["value"]) if path else operation["value"]
    if kind == "add":
        return _add(document, path, operation["value"])
    source = _pointer(operation["from"])
    value = copy.deepcopy(_read(document, source))
    if kind == "move":
        document = _remove(document, source)
    elif kind != "copy":
        raise ValueError("an unknown operation")
    return _add(document, path, value)


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError("a pointer begins with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], part: str, limit: int) -> int:
    if not part.isdecimal() or int(part) >= limit:
        raise IndexError(part)
    return int(part)


def _read(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part, len(document)) if isinstance(document, list) else part]
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise ValueError("the whole object cannot be removed")
    owner = _read(document, path[:-1])
    del owner[_index(owner, path[-1], len(owner)) if isinstance(owner, list) else path[-1]]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    owner = _read(document, path[:-1])
    if isinstance(owner, list):
        place = len(owner) if path[-1] == "-" else _index(owner, path[-1], len(owner) + 1)
        owner.insert(place, value)
    elif isinstance(owner, dict):
        owner[path[-1]] = value
    else:
        raise TypeError("neither a list nor an object")
    return document

"""Parses paths of the API: group, version, resource, namespace, name, subresource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from kdsl.sandbox.model.errors import no_page, no_such_path, not_allowed
from kdsl.sandbox.model.resources import BY_PATH, GROUP_VERSIONS, VIRTUAL, Resource

_GROUPS: Final = frozenset(group for group, _ in GROUP_VERSIONS)
_OBJECT_VERBS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS: Final = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_PART_VERBS: Final = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Route:
    """The target of a path and a method."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def read_query(raw: bytes) -> dict[str, str]:
    """Return the first value of every query parameter."""
    if not raw:
        return {}
    found: dict[str, str] = {}
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=100):
        found.setdefault(name, value)
    return found


def is_api(path: str) -> bool:
    """Return whether a path is below a group's version."""
    parts = path.split("/", 5)
    return (parts[1] == "api" and len(parts) > 3 and bool(parts[3])) or (
        parts[1] == "apis" and len(parts) > 4 and bool(parts[4])
    )


def route(method: str, path: str, query: Mapping[str, str]) -> Route:
    """Return the route of a request; raises 404 or 405 where the path or the method is unknown."""
    parts = path.rstrip("/").split("/")[1:]
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
        if group not in _GROUPS:
            raise no_page()
    is_watch = query.get("watch") in ("true", "1")
    is_old_path = rest[0] == "watch" and len(rest) > 1
    if is_old_path:
        rest, is_watch = rest[1:], True
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or (namespace and not resource.is_namespaced) or len(rest) > 3:
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    part = rest[2] if len(rest) > 2 else ""
    verb = _verb(method, resource, name, part, namespace, is_watch)
    # Only the old path watches an object by its name.
    verb = "watch" if is_old_path and verb == "get" and not part else verb
    return Route(verb, resource, namespace, name, part)


def _verb(method: str, resource: Resource, name: str, part: str, namespace: str, is_watch: bool) -> str:
    if part:
        known = resource.subresource(part)
        if known is None:
            raise no_such_path()
        verb = _PART_VERBS.get(method, "")
        if verb not in known.verbs:
            raise not_allowed()
        return verb
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get(method, "")
    if resource.plural in VIRTUAL and verb != "create":
        raise not_allowed()
    if verb not in resource.verbs:
        raise not_allowed()
    if name and resource.is_namespaced and not namespace:
        raise no_such_path()
    if verb == "create" and resource.is_namespaced and not namespace:
        raise not_allowed()
    return "watch" if verb == "list" and is_watch else verb

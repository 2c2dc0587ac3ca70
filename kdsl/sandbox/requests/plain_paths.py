"""Paths outside of the API's objects: discovery, OpenAPI, health, version, metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kdsl.sandbox.formats import discovery, openapi
from kdsl.sandbox.model.errors import Json, no_page, no_such_path, not_allowed
from kdsl.sandbox.requests.call import Reply, document

_TEXT: Final = "text/plain; charset=utf-8"
_HEALTH: Final = ("/readyz", "/livez", "/healthz")
_CHECKS: Final = ("ping", "log", "etcd")
_VARY: Final = {"vary": "Accept"}


def plain(method: str, path: str, query: Mapping[str, str], accept: str, requests: int) -> Reply:
    """Answer a request outside of the API's objects. `requests` is the number of requests so far."""
    path = path.rstrip("/") or "/"
    known = _health(path, query) or _documents(path, accept)
    if known is None and path == "/metrics":
        text = f"# TYPE kdsl_sandbox_requests_total counter\nkdsl_sandbox_requests_total {requests}\n"
        known = Reply(200, text.encode(), _TEXT)
    if known is None:
        parts = path.split("/")
        raise no_such_path() if parts[1] == "apis" and _is_group(parts[2:3]) else no_page()
    if method != "GET":
        raise not_allowed()
    return known


def _is_group(parts: list[str]) -> bool:
    return bool(parts) and discovery.group_document(parts[0]) is not None


def _health(path: str, query: Mapping[str, str]) -> Reply | None:
    for root in _HEALTH:
        if path == root and "verbose" in query:
            lines = "".join(f"[+]{check} ok\n" for check in _CHECKS)
            return Reply(200, f"{lines}{root[1:]} check passed\n".encode(), _TEXT)
        if path == root or path in [f"{root}/{check}" for check in _CHECKS]:
            return Reply(200, b"ok", _TEXT)
    return None


def _documents(path: str, accept: str) -> Reply | None:
    if path in ("/api", "/apis"):
        return _roots(path == "/api", accept)
    if path == "/version":
        return document(dict(discovery.VERSION))
    if path == "/":
        return document({"paths": list(discovery.PATHS)})
    if path == "/openapi/v3":
        reply = document(openapi.index())
        reply.content_type = _TEXT
        return reply
    if path == "/openapi/v2":
        if openapi.wants_protobuf(accept):
            return Reply(200, openapi.v2_protobuf(), openapi.V2_PROTOBUF, dict(_VARY))
        return Reply(200, openapi.v2_json(), headers=dict(_VARY))
    if path.startswith("/openapi/v3/"):
        schema = openapi.schema_document(path.removeprefix("/openapi/v3/"))
        return None if schema is None else Reply(200, schema, headers=dict(_VARY))
    return _found(_group_paths(path))


def _found(body: Json | None) -> Reply | None:
    return None if body is None else document(body)


def _group_paths(path: str) -> Json | None:
    parts = path.split("/")[1:]
    if parts[0] == "api" and len(parts) == 2:
        return discovery.resources_document("", parts[1])
    if parts[0] == "apis" and len(parts) == 2:
        return discovery.group_document(parts[1])
    if parts[0] == "apis" and len(parts) == 3:
        return discovery.resources_document(parts[1], parts[2])
    return None


def _roots(is_core: bool, accept: str) -> Reply:
    if discovery.wants_aggregated(accept):
        reply = document(discovery.aggregated_document(is_core))
        reply.content_type = discovery.AGGREGATED
        reply.headers = dict(_VARY)
        return reply
    return document(discovery.versions_document() if is_core else discovery.groups_document())

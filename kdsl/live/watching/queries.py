"""The requests that list and watch a resource, and the meaning of refusals.

Forms and order are those of kube-scheduler's client; `reflector` sends them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from kdsl.live.http.messages import HttpRequest
from kdsl.live.watching.decode import Status
from kdsl.live.watching.resources import ApiResource

PAGE: Final = 500
"""The number of objects in a page of a list."""


class Trouble(StrEnum):
    """The cause of a failed list or watch."""

    EXPIRED = "expired"
    TOO_NEW = "too new"
    TOO_MANY = "too many requests"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    NO_ANSWER = "no answer"
    SHORT = "ended at once"
    MALFORMED = "malformed"
    SERVER = "server error"
    OTHER = "refused"


def trouble_of(status: Status) -> Trouble:
    """Return the cause of a server's error."""
    if status.is_expired:
        return Trouble.EXPIRED
    if status.is_too_large:
        return Trouble.TOO_NEW
    known = {429: Trouble.TOO_MANY, 401: Trouble.UNAUTHORIZED, 403: Trouble.FORBIDDEN, 404: Trouble.ABSENT}
    return known.get(status.code, Trouble.SERVER if status.code >= 500 else Trouble.OTHER)


def watch_list(resource: ApiResource, version: str, seconds: int) -> HttpRequest:
    """Return the watch that begins with all objects, in a state not older than `version`."""
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return _get(resource, {**query, **_watching(seconds), "resourceVersion": version})


def watch(resource: ApiResource, version: str, seconds: int) -> HttpRequest:
    """Return the watch for changes after `version`; the server ends it after `seconds`."""
    return _get(resource, {"watch": "true", **_watching(seconds), "resourceVersion": version})


def first_list(resource: ApiResource) -> HttpRequest:
    """Return the first list: any state, from the server's cache."""
    return _get(resource, {"limit": str(PAGE), "resourceVersion": "0"})


def fresh_list(resource: ApiResource, version: str) -> HttpRequest:
    """Return the complete list in a state not older than `version`."""
    return _get(resource, {"resourceVersion": version})


def newest_list(resource: ApiResource, token: str = "", *, is_paged: bool = True) -> HttpRequest:
    """Return the list of the newest state, or its next page."""
    return _get(resource, {"limit": str(PAGE) if is_paged else "", "continue": token})


def _watching(seconds: int) -> dict[str, str]:
    return {"allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}


def _get(resource: ApiResource, query: dict[str, str]) -> HttpRequest:
    pairs = {"fieldSelector": resource.field_selector, **query}
    return HttpRequest(
        "GET", resource.path, query=tuple((name, value) for name, value in pairs.items() if value)
    )

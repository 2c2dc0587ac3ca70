"""Error answers: `Status` objects with the API's reasons, texts and details.

Code that cannot carry out a request raises an `ApiError`; the handler sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from kdsl.sandbox.model.resources import Resource

Json: TypeAlias = dict[str, Any]
"""An API object as JSON."""

STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"


class ApiError(Exception):
    """A request that is answered with an error."""

    def __init__(self, body: Json | str, code: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body if isinstance(body, str) else body.get("message", ""))
        self.body = body
        self.code = code
        self.headers = dict(headers or {})


class CauseReason(StrEnum):
    """The reason why a field is invalid."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    NOT_SUPPORTED = "FieldValueNotSupported"
    NOT_FOUND = "FieldValueNotFound"
    TOO_LONG = "FieldValueTooLong"


@dataclass(slots=True)
class Causes:
    """The invalid fields of one object, in the order they were found."""

    found: list[Json] = field(default_factory=list)

    def required(self, path: str, detail: str = "") -> None:
        """Add the error of a missing value."""
        self._add(CauseReason.REQUIRED, path, "Required value" + (f": {detail}" if detail else ""))

    def invalid(self, path: str, value: str, detail: str) -> None:
        """Add the error of an invalid value, which is printed as Go prints it."""
        self._add(CauseReason.INVALID, path, f"Invalid value: {value}: {detail}")

    def forbidden(self, path: str, detail: str) -> None:
        """Add the error of a forbidden value or change."""
        self._add(CauseReason.FORBIDDEN, path, f"Forbidden: {detail}")

    def duplicate(self, path: str, value: str, detail: str = "") -> None:
        """Add the error of a repeated value."""
        self._add(
            CauseReason.DUPLICATE, path, f"Duplicate value: {value}" + (f": {detail}" if detail else "")
        )

    def missing(self, path: str, value: str) -> None:
        """Add the error of a value that names a missing object."""
        self._add(CauseReason.NOT_FOUND, path, f"Not found: {value}")

    def unsupported(self, path: str, value: str, supported: Iterable[str]) -> None:
        """Add the error of a value that is not one of the supported ones."""
        known = ", ".join(f'"{item}"' for item in supported)
        self._add(CauseReason.NOT_SUPPORTED, path, f"Unsupported value: {value}: supported values: {known}")

    def too_long(self, path: str, most: int) -> None:
        """Add the error of a text with too many bytes."""
        self._add(CauseReason.TOO_LONG, path, f"Too long: may not be more than {most} bytes")

    def twice(self) -> None:
        """Repeat the errors, as the server does for metadata that it validates twice."""
        self.found.extend(list(self.found))

    def _add(self, reason: CauseReason, path: str, message: str) -> None:
        self.found.append({"reason": str(reason), "message": message, "field": path})


def status(
    code: int, message: str, reason: str = "", details: Json | None = None, metadata: Json | None = None
) -> Json:
    """Return the Status of a failure."""
    body: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": metadata or {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return body


def success(code: int = 0, details: Json | None = None) -> Json:
    """Return the Status of a success."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        body["details"] = details
    if code:
        body["code"] = code
    return body


def details(resource: Resource, name: str, kind: str = "") -> Json:
    """Return the details of a Status about an object; `kind` is the plural name by default."""
    found: Json = {"name": name} if name else {}
    if resource.group:
        found["group"] = resource.group
    found["kind"] = kind or resource.plural
    return found


def bad_request(message: str) -> ApiError:
    """Return the error for a malformed request."""
    return ApiError(status(400, message, "BadRequest"), 400)


def not_found(resource: Resource, name: str) -> ApiError:
    """Return the error for a missing object."""
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(status(404, message, "NotFound", details(resource, name)), 404)


def no_such_path() -> ApiError:
    """Return the error for a resource that this server does not have."""
    message = "the server could not find the requested resource"
    return ApiError(status(404, message, "NotFound", {}), 404)


def no_page() -> ApiError:
    """Return the error for a path outside of the API."""
    return ApiError("404 page not found\n", 404)


def not_allowed() -> ApiError:
    """Return the error for a method that the path does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(status(405, message, "MethodNotAllowed", {}), 405)


def exists(resource: Resource, name: str) -> ApiError:
    """Return the error for a name that is taken."""
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(status(409, message, "AlreadyExists", details(resource, name)), 409)


def conflict(resource: Resource, name: str, why: str, plural: str = "") -> ApiError:
    """Return the error for a write that the object's state does not allow. `plural` as in `pods/binding`."""
    message = f'Operation cannot be fulfilled on {plural or resource.qualified} "{name}": {why}'
    return ApiError(status(409, message, "Conflict", details(resource, name, plural)), 409)


def precondition(resource: Resource, key: tuple[str, str], what: str, wanted: str, present: str) -> ApiError:
    """Return the error for a `uid` or `resourceVersion` of a request that is not the object's."""
    path = "/registry/" + "/".join(part for part in (resource.plural, *key) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {present}"
    )
    return conflict(resource, key[1], why)


def forbidden(resource: Resource, name: str, why: str, causes: list[Json] | None = None) -> ApiError:
    """Return the error for a request that a right or an admission check rejects."""
    subject = f'{resource.qualified} "{name}"' if name else resource.qualified
    found = details(resource, name)
    if causes:
        found["causes"] = causes
    return ApiError(status(403, f"{subject} is forbidden: {why}", "Forbidden", found), 403)


def invalid(group: str, kind: str, name: str, causes: Causes) -> ApiError:
    """Return the error for an object with invalid fields."""
    qualified = f"{kind}.{group}" if group else kind
    texts = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes.found))
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    found: Json = {"name": name} if name else {}
    if group:
        found["group"] = group
    if kind:
        found["kind"] = kind
    found["causes"] = causes.found
    return ApiError(status(422, f'{qualified} "{name}" is invalid: {said}', "Invalid", found), 422)


def too_large_version(wanted: int, current: int) -> Json:
    """Return the Status for a resourceVersion that this server has not reached."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return status(
        504,
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        "Timeout",
        {"causes": causes, "retryAfterSeconds": 1},
    )


def expired(wanted: int, oldest: int) -> Json:
    """Return the Status for a watch from a resourceVersion whose history is gone."""
    return status(410, f"too old resource version: {wanted} ({oldest})", "Expired")

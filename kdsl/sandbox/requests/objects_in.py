"""Objects of request bodies, read and checked against their schema."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.formats.decoding import Complaints, clean, parse_body
from kdsl.sandbox.formats.protobuf import UnreadableError, decode_protobuf
from kdsl.sandbox.model.errors import ApiError, Json, bad_request, status
from kdsl.sandbox.model.events_form import is_converted, to_core
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.schema import schema_named, schema_of
from kdsl.sandbox.requests.call import JSON_TYPE, YAML_TYPE, Call

# The reference's own text.
_UNKNOWN_MEDIA: Final = (
    "the body of the request was in an unknown format - accepted media types include: application/json, "
    "application/yaml, application/vnd.kubernetes.protobuf"
)
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_NO_PROTOBUF: Final = (
    "the sandbox reads JSON and YAML, and of protobuf what `kubectl create KIND` mostly sends: add "
    "`--dry-run=client -o yaml | kubectl apply -f -`"
)
_PART_GROUPS: Final = {"Eviction": "policy", "Scale": "autoscaling"}


def read_object(call: Call, is_strict: bool, validation: str) -> tuple[Json, tuple[str, ...]]:
    """Return the object of a body without kind and API version, and the warnings about its fields."""
    resource = call.resource
    value, repeated = _parse(call, resource.kind, is_strict or validation == "Warn")
    kind = value.get("kind", resource.kind)
    if kind != resource.kind:
        version = value.get("apiVersion", resource.api_version).rsplit("/", maxsplit=1)[-1]
        internal = resource.group.split(".", maxsplit=1)[0] or "core"
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: converting '
            f"({version}.{kind}) to ({internal}.{resource.kind}): unknown conversion"
        )
    if value.get("apiVersion", resource.api_version) != resource.api_version:
        raise bad_request(
            f"the API version in the data ({value['apiVersion']}) does not match the expected API version "
            f"({resource.api_version})"
        )
    body, complaints = conform(resource, value)
    warnings = judge(resource.kind, resource.version, [*repeated, *complaints], is_strict, validation)
    return body, warnings


def conform(resource: Resource, value: Json) -> tuple[Json, list[str]]:
    """Return the stored form of an object, and its unknown fields."""
    complaints = Complaints()
    body = clean(value, schema_of(resource), complaints, resource.api_version)
    body.pop("kind", None)
    body.pop("apiVersion", None)
    body.setdefault("metadata", {})
    return (to_core(body) if is_converted(resource) else body), complaints.texts()


def read_part(call: Call, kind: str) -> Json:
    """Return the object that is posted to a subresource: a Binding, an Eviction, a Scale."""
    value, _ = _parse(call, kind, False)
    given, group = value.get("kind", kind), _PART_GROUPS.get(kind, "core")
    if given != kind:
        version = value.get("apiVersion", "v1").rpartition("/")[2]
        raise bad_request(
            f'{given} in version "{version}" cannot be handled as a {kind}: converting '
            f"({version}.{given}) to ({group}.{kind}): unknown conversion"
        )
    found = clean(value, schema_named(kind), Complaints(), "v1")
    found.setdefault("metadata", {})
    return found


def judge(
    kind: str, version: str, complaints: list[str], is_strict: bool, validation: str
) -> tuple[str, ...]:
    """Return complaints as warnings; raises 400 where the client asked for a strict reading."""
    if complaints and is_strict:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: '
            f"{', '.join(complaints)}"
        )
    return () if validation == "Ignore" else tuple(complaints)


def _parse(call: Call, kind: str, is_strict: bool) -> tuple[Json, list[str]]:
    media = call.content_type.partition(";")[0].strip()
    if media == _PROTOBUF:
        try:
            return decode_protobuf(call.body, schema_of(call.resource)), []
        except (UnreadableError, RecursionError) as error:
            raise ApiError(status(415, f"{_NO_PROTOBUF} ({error})", "UnsupportedMediaType"), 415) from None
    if media not in ("", JSON_TYPE, YAML_TYPE):
        raise ApiError(status(415, _UNKNOWN_MEDIA, "UnsupportedMediaType"), 415)
    value, repeated = parse_body(call.body, media == YAML_TYPE, kind, is_strict)
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): it is no object")
    return value, repeated

"""A request in parsed form, its reply, and the world that handlers act on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec
import yaml

from kdsl.sandbox.formats.apply import Owners
from kdsl.sandbox.model.errors import ApiError, Json, bad_request, status
from kdsl.sandbox.model.events_form import from_core, is_converted
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.store import Store, Version, encode
from kdsl.sandbox.model.times import Chance

JSON_TYPE: Final = "application/json"
YAML_TYPE: Final = "application/yaml"


@dataclass(slots=True)
class SandboxState:
    """The complete state of a sandbox that requests read and change."""

    store: Store
    chance: Chance
    owners: Owners = field(default_factory=Owners)

    def remove(self, resource: Resource, version: Version, body: Json) -> Version:
        """Remove an object, whose last state is `body`."""
        self.owners.forget(version.uid)
        return self.store.remove(resource, version.key, body)


@dataclass(frozen=True, slots=True)
class RequestUser:
    """The sender of a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer: whole objects, their metadata, or a Table; as JSON or YAML."""

    shape: str = ""
    version: str = "v1"
    media: str = JSON_TYPE


@dataclass(slots=True)
class Call:
    """A request for objects, its path parsed. `body` is empty until it has been read."""

    user: RequestUser
    method: str
    path: str
    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    accept: str = ""
    body: bytes = b""

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the object in its collection."""
        return self.namespace, self.name

    @property
    def form(self) -> AnswerForm:
        """Return the form that the client wants; raises 406 where the server cannot write it."""
        return read_accept(self.accept)


@dataclass(slots=True)
class Reply:
    """The answer to a request. With `stream` the body is produced by the iterator."""

    code: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stream: AsyncIterator[bytes] | None = None


_JSON_FORM: Final = AnswerForm()
_MEDIA: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_SHAPES: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@lru_cache(maxsize=256)
def read_accept(accept: str) -> AnswerForm:
    """Read an Accept header: the first form in it that the server can write."""
    if not accept or accept == JSON_TYPE:
        return _JSON_FORM
    has_shape = False
    for part in accept.split(","):
        media, *written = (item.strip() for item in part.split(";"))
        if media not in (JSON_TYPE, YAML_TYPE, "*/*", "application/*"):
            continue
        parameters = dict(item.partition("=")[::2] for item in written)
        shape = parameters.get("as", "")
        if shape and (shape not in _SHAPES or parameters.get("g", "meta.k8s.io") != "meta.k8s.io"):
            has_shape = True
            continue
        media = YAML_TYPE if media == YAML_TYPE else JSON_TYPE
        return AnswerForm(shape.removesuffix("List"), parameters.get("v", "v1"), media)
    if has_shape:
        message = f"only the following media types are accepted: {_MEDIA}"
        raise ApiError(status(406, message, "NotAcceptable"), 406)
    streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    message = f"406: Not Acceptable\n\nAvailable representations: {_MEDIA}, {streams}"
    raise ApiError(status(406, message, "NotAcceptable", {}), 406)


def whole(resource: Resource, version: Version) -> bytes:
    """Return the JSON of a whole object in the resource's API version."""
    if is_converted(resource):
        return resource.head + encode(from_core(version.body()))[1:]
    return resource.head + version.data[1:]


def whole_body(resource: Resource, body: Json) -> Json:
    """Return a stored object with its kind and API version."""
    shown = from_core(body) if is_converted(resource) else body
    return {"kind": resource.kind, "apiVersion": resource.api_version, **shown}


def document(body: Json, code: int = 200, media: str = JSON_TYPE) -> Reply:
    """Return the reply for a document."""
    if media == YAML_TYPE:
        text = yaml.safe_dump(body, sort_keys=True, default_flow_style=False, width=2**20, allow_unicode=True)
        return Reply(code, text.encode(), YAML_TYPE)
    return Reply(code, encode(body))


def failure(error: ApiError, accept: str) -> Reply:
    """Return the reply for an error."""
    if isinstance(error.body, str):
        text = "text/plain; charset=utf-8"
        return Reply(error.code, error.body.encode(), text, error.headers)
    try:
        media = read_accept(accept).media
    except ApiError:
        media = JSON_TYPE
    reply = document(error.body, error.code, media)
    reply.headers = error.headers
    return reply


def decode_document(data: bytes) -> Json:
    """Return the JSON object of a body without a schema; raises 400 for any other body."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise bad_request(f"the object provided is unrecognized: json parse error: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("the object provided is unrecognized: it is no JSON object")
    return found

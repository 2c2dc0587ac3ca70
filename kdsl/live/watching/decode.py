"""Decodes JSON of the API server into the objects that the scheduler keeps. Every reflector uses it.

An object is decoded twice, and unused fields are skipped both times: first its identity, which is enough for
an unchanged object, then the fields that rules read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.api.storage_objects import PersistentVolume
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.defaults import with_defaults
from kdsl.cluster.read.problems import Problems
from kdsl.live.watching.changes import LiveNode, LiveObject, LivePod, PodCondition
from kdsl.live.watching.resources import ApiResource

T = TypeVar("T")

UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""The exceptions of msgspec for malformed JSON."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
MAX_SHARED: Final = 16 * 1024
"""The most shared values: enough for some thousand workloads."""

_SHARED_FIELDS: Final = (
    "namespace", "node_name", "scheduler_name", "service_account", "preemption_policy", "phase",
    "owner_references", "tolerations", "node_selector", "required_node_affinity", "preferred_node_terms",
    "required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity",
    "spread_constraints", "images", "containers", "init_containers", "device_containers", "host_ports",
)  # fmt: skip


class MalformedError(Exception):
    """An object or frame that cannot be read; the text is the reason."""


class Cause(Struct, frozen=True):
    """A cause in a `Status`."""

    reason: str = ""
    field: str = ""


class Details(Struct, frozen=True, rename="camel"):
    """The `details` of a `Status`."""

    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct, frozen=True):
    """An answer of the API server without an object: mostly an error."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details = Details()

    @property
    def is_expired(self) -> bool:
        """Return whether the requested version is too old, in any of the forms that servers use."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @property
    def is_too_large(self) -> bool:
        """Return whether the requested version is newer than the server's newest."""
        if any(one.reason == "ResourceVersionTooLarge" for one in self.details.causes):
            return True
        return "Too large resource version" in self.message


class WatchFrame(Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: Raw


class _ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str | None = field(default="", name="continue")


class Page(Struct, frozen=True):
    """A list, or a page of one; the objects are not decoded."""

    metadata: _ListMeta = _ListMeta()
    items: list[Raw] | None = None


class _Meta(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class _Conditions(Struct, frozen=True):
    conditions: tuple[PodCondition, ...] | None = None


class _Identity(Struct, frozen=True):
    metadata: _Meta


class _PodIdentity(Struct, frozen=True):
    metadata: _Meta
    status: _Conditions = _Conditions()


class _BookmarkMeta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class Bookmark(Struct, frozen=True):
    """A frame with the version that a watch has reached."""

    metadata: _BookmarkMeta = _BookmarkMeta()

    @property
    def ends_initial_events(self) -> bool:
        """Return whether all initial objects were sent."""
        return (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


_frame: Final = msgspec.json.Decoder(WatchFrame)
_page: Final = msgspec.json.Decoder(Page)
_status: Final = msgspec.json.Decoder(Status)
_bookmark: Final = msgspec.json.Decoder(Bookmark)


def read_frame(line: bytes) -> WatchFrame:
    """Read a line of a watch; raise MalformedError."""
    try:
        return _frame.decode(line)
    except UNREADABLE as error:
        raise MalformedError(str(error)) from None


def read_page(body: bytes) -> Page:
    """Read a list; raise MalformedError, also for other JSON, as of a proxy: every list has a version."""
    try:
        page = _page.decode(body)
    except UNREADABLE as error:
        raise MalformedError(str(error)) from None
    if not page.metadata.resource_version:
        raise MalformedError("it has no resourceVersion")
    return page


def read_bookmark(raw: Raw | bytes) -> Bookmark:
    """Read the object of a bookmark; raise MalformedError."""
    try:
        return _bookmark.decode(raw)
    except UNREADABLE as error:
        found = _decode_without_nulls(raw, Bookmark)
        if found is None:
            raise MalformedError(str(error)) from None
        return found


def status_of(body: bytes | Raw) -> Status | None:
    """Read an error of the server; None for text that is no `Status`."""
    try:
        return _status.decode(body)
    except UNREADABLE:
        return _decode_without_nulls(body, Status)


def read_status(body: bytes | Raw, code: int = 0) -> Status:
    """Read an error of the server; text that is no `Status`, as proxies send it, becomes its message."""
    status = status_of(body)
    if status is None:
        text = bytes(body[:200]).decode("utf-8", "replace") if isinstance(body, bytes) else ""
        return Status(code, "", text.strip())
    return status if status.code or not code else Status(code, status.reason, status.message, status.details)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an object, and the conditions and generation of a pod."""

    key: str
    uid: str
    version: str
    generation: int = 0
    conditions: tuple[PodCondition, ...] = ()


class ObjectDecoder:
    """Decodes the objects of one resource."""

    def __init__(self, resource: ApiResource) -> None:
        self._resource = resource
        self._is_pod = resource.kind is Pod
        self._identity: msgspec.json.Decoder[_Identity | _PodIdentity] = msgspec.json.Decoder(
            _PodIdentity if self._is_pod else _Identity
        )
        self._kind: msgspec.json.Decoder[KubeObject] = msgspec.json.Decoder(resource.kind)

    def identify(self, raw: Raw | bytes) -> Identity:
        """Return the identity of an object; raise MalformedError."""
        try:
            found = self._identity.decode(raw)
        except UNREADABLE:
            found = self._identify_again(raw)
        meta = found.metadata
        if not (meta.name and meta.resource_version):
            raise MalformedError(f"an object of {self._resource.name} has no name or no resourceVersion")
        key = f"{meta.namespace}/{meta.name}" if self._resource.is_namespaced else meta.name
        conditions = found.status.conditions if isinstance(found, _PodIdentity) else None
        return Identity(key, meta.uid, meta.resource_version, meta.generation, conditions or ())

    def decode(self, raw: Raw | bytes, identity: Identity) -> LiveObject:
        """Return the object that the scheduler keeps; raise MalformedError."""
        try:
            thing = self._kind.decode(raw)
        except UNREADABLE:
            thing = self._decode_again(raw, identity.key)
        try:
            thing = with_defaults(thing)
            if isinstance(thing, Pod):
                return slim(PodInfo.of(thing), identity)
            if isinstance(thing, Node):
                return LiveNode(NodeFacts.of(thing), identity.uid, identity.version)
            if isinstance(thing, PersistentVolume):
                VolumeInfo.of(thing)  # the cache makes it as well, when it is too late to refuse the object
            return thing
        except (ValueError, ArithmeticError, TypeError, LookupError) as error:
            # The API server accepts such values, so this is no bug of kdsl, but they cannot be used.
            raise MalformedError(f"{self._resource.name} {identity.key}: {error}") from None

    def _identify_again(self, raw: Raw | bytes) -> _Identity | _PodIdentity:
        found: list[Diagnostic] = []
        into: type[_Identity | _PodIdentity] = _PodIdentity if self._is_pod else _Identity
        identity = decode(_values(raw), into, Problems(found, self._resource.name))
        if identity is None:
            raise MalformedError(_first(found, self._resource.name))
        return identity

    def _decode_again(self, raw: Raw | bytes, key: str) -> KubeObject:
        """Decode an object again with nulls removed where the API has none; raise MalformedError if it still
        fails.
        """
        found: list[Diagnostic] = []
        where = f"{self._resource.name} {key}"
        thing = decode(_values(raw), self._resource.kind, Problems(found, where))
        if thing is None:
            raise MalformedError(_first(found, where))
        return thing


def _decode_without_nulls(raw: Raw | bytes, into: type[T]) -> T | None:
    """Decode JSON in which nulls stand for absent fields, as servers that are not in Go may write it."""
    try:
        return decode(_values(raw), into, Problems([], ""))
    except MalformedError:
        return None


def _values(raw: Raw | bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise MalformedError(str(error)) from None


def _first(found: list[Diagnostic], where: str) -> str:
    return f"{found[0].where}: {found[0].title}" if found else f"{where}: it cannot be read"


@lru_cache(MAX_SHARED)
def _share(value: Any) -> Any:
    """Return the stored value that equals this one and has its type; store it if there is none."""
    return value


@lru_cache(MAX_SHARED)
def _share_condition(condition: PodCondition) -> PodCondition:
    return condition


def slim(info: PodInfo, identity: Identity) -> LivePod:
    """Return the pod with its values replaced by shared equal ones: equal values are stored once.

    A pod of a large workload takes 2.9 KiB with this and 5.2 KiB without.
    """
    fields = {name: _share(value) for name in _SHARED_FIELDS if (value := getattr(info, name))}
    conditions = tuple(map(_share_condition, identity.conditions))
    return LivePod(replace(info, **fields), identity.version, identity.generation, conditions)

"""The requests that change objects in the API server, and those that read the objects again; their paths.

Every request passes its lane and returns an outcome: no answer raises an exception. The caller decides about
retries. For the thread of the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder, decode, encode

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.base.visible import visible
from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.http.lanes import Lane, Lanes
from kdsl.live.http.messages import MERGE_PATCH, STRATEGIC_PATCH, HttpRequest, NoAnswerError, Sender, always
from kdsl.live.watching.changes import PodCondition
from kdsl.live.writing import bodies
from kdsl.live.writing.bodies import JsonObject
from kdsl.live.writing.events import EventsApi
from kdsl.live.writing.outcomes import Done, Lost, Refused, Result

T = TypeVar("T")

_EVENTS_GROUP: Final = "/apis/events.k8s.io/v1"
_DEVICES_GROUP: Final = "/apis/resource.k8s.io/v1"
_CORE: Final = "/api/v1"
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_NOWHERE: Final = frozenset(("", ".", ".."))


class _Meta(Struct, frozen=True, rename="camel"):
    uid: str
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Condition(Struct, frozen=True, rename="camel"):
    """A condition as the server writes it: empty fields may be null."""

    type: str
    status: str | None = ""
    reason: str | None = ""
    message: str | None = ""
    last_transition_time: str | None = ""
    observed_generation: int | None = 0

    def known(self) -> PodCondition:
        """Return the condition without nulls."""
        return PodCondition(
            self.type,
            self.status or "",
            self.reason or "",
            self.message or "",
            self.last_transition_time or "",
            self.observed_generation or 0,
        )


class _Status(Struct, frozen=True, rename="camel"):
    nominated_node_name: str = ""
    conditions: list[_Condition] | None = None


class _Thing(Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Stored(Struct, frozen=True):
    """The required part of every stored object."""

    metadata: _Meta


class _Answer(Struct, frozen=True):
    """The required field of every answer of the API, which is an object or a `Status`."""

    kind: str


class SeenPod(Struct, frozen=True):
    """A pod in an answer of the server; `node` is empty while it is not bound."""

    uid: str
    version: str
    node: str = ""
    nominated: str = ""
    generation: int = 0
    is_terminating: bool = False
    conditions: tuple[PodCondition, ...] = ()


class SeenNode(Struct, frozen=True):
    """A node in an answer of the server."""

    uid: str
    version: str
    annotations: Mapping[str, str]


_POD: Final = Decoder(_Thing)
_STORED: Final = Decoder(_Stored)
_ANSWER: Final = Decoder(_Answer)
_OBJECT: Final = Decoder(dict[str, Any])
_PARTS: Final = Decoder(dict[str, Raw])
_STATUS_PARTS: Final = Decoder(dict[str, Raw] | None)


class Api:
    """Writes to the API server through `sender`."""

    def __init__(self, sender: Sender, leads: Callable[[], bool] = always) -> None:
        """Pods are bound and deleted only while `leads` returns True."""
        self._sender, self._leads, self._lanes = sender, leads, Lanes()

    async def bind(self, pod: PodInfo, node: str) -> Result[None]:
        """Bind the pod to a node. The server does not check that the node exists."""
        path = pod_path(pod.namespace, pod.name, "binding")
        request = HttpRequest("POST", path, bodies.binding(pod, node), is_wanted=self._leads)
        return await self._send(Lane.BIND, request, _acknowledged)

    async def read_pod(self, namespace: str, name: str) -> Result[SeenPod]:
        """Read the current pod."""
        request = HttpRequest("GET", pod_path(namespace, name))
        return await self._send(Lane.BIND, request, _seen_pod)

    async def patch_status(
        self,
        pod: PodInfo,
        patch: bytes,
        lane: Lane = Lane.STATUS,
        is_wanted: Callable[[], bool] = always,
    ) -> Result[SeenPod]:
        """Change a pod's status by a strategic merge patch."""
        path = pod_path(pod.namespace, pod.name, "status")
        request = HttpRequest("PATCH", path, patch, STRATEGIC_PATCH, is_wanted=is_wanted)
        return await self._send(lane, request, _seen_pod)

    async def delete_pod(self, pod: PodInfo) -> Result[None]:
        """Delete the pod with its own grace period; a new pod of the same name stays."""
        path, body = pod_path(pod.namespace, pod.name), bodies.delete_options(pod.uid)
        request = HttpRequest("DELETE", path, body, is_wanted=self._leads)
        return await self._send(Lane.EVICT, request, _acknowledged)

    async def annotate_pod(
        self, pod: PodInfo, annotations: Mapping[str, str], labels: Mapping[str, str] = NO_STRINGS
    ) -> Result[None]:
        """Annotate and label the pod; a new pod of the same name is not changed."""
        body = bodies.annotation_patch(annotations, labels=labels, uid=pod.uid)
        request = HttpRequest("PATCH", pod_path(pod.namespace, pod.name), body, MERGE_PATCH)
        return await self._send(Lane.BIND, request, _acknowledged)

    async def read_node(self, name: str) -> Result[SeenNode]:
        """Read the current annotations of a node."""
        return await self._send(Lane.BIND, HttpRequest("GET", node_path(name)), _seen_node)

    async def annotate_node(
        self, name: str, annotations: Mapping[str, str], version: str
    ) -> Result[SeenNode]:
        """Annotate a node, if its version is still `version`."""
        body = bodies.annotation_patch(annotations, version=version)
        request = HttpRequest("PATCH", node_path(name), body, MERGE_PATCH)
        return await self._send(Lane.BIND, request, _seen_node)

    async def read_claim(self, namespace: str, name: str) -> Result[JsonObject]:
        """Read a complete PersistentVolumeClaim."""
        request = HttpRequest("GET", claim_path(namespace, name))
        return await self._send(Lane.BIND, request, _whole)

    async def update_claim(self, claim: JsonObject) -> Result[JsonObject]:
        """Replace a PersistentVolumeClaim that was read before."""
        meta = claim["metadata"]
        request = HttpRequest("PUT", claim_path(meta["namespace"], meta["name"]), encode(claim))
        return await self._send(Lane.BIND, request, _whole)

    async def read_device_claim(self, namespace: str, name: str) -> Result[JsonObject]:
        """Read a complete ResourceClaim."""
        request = HttpRequest("GET", device_claim_path(namespace, name))
        return await self._send(Lane.BIND, request, _device_claim)

    async def update_device_claim(self, claim: JsonObject, subresource: str = "") -> Result[JsonObject]:
        """Replace a ResourceClaim that was read before, or its status."""
        meta = claim["metadata"]
        path = device_claim_path(meta["namespace"], meta["name"], subresource)
        request = HttpRequest("PUT", path, bodies.escaped(encode(claim)))
        return await self._send(Lane.BIND, request, _device_claim)

    async def create_device_claim(self, namespace: str, body: bytes) -> Result[JsonObject]:
        """Create a ResourceClaim; return it with its name."""
        request = HttpRequest("POST", device_claims_path(namespace), body)
        return await self._send(Lane.BIND, request, _device_claim)

    async def delete_device_claim(self, namespace: str, name: str, uid: str) -> Result[None]:
        """Delete the ResourceClaim with this uid."""
        request = HttpRequest("DELETE", device_claim_path(namespace, name), bodies.delete_options(uid))
        return await self._send(Lane.BIND, request, _acknowledged)

    async def patch_device_claim(self, namespace: str, name: str, patch: bytes) -> Result[None]:
        """Change the status of a ResourceClaim by a strategic merge patch."""
        request = HttpRequest("PATCH", device_claim_path(namespace, name, "status"), patch, STRATEGIC_PATCH)
        return await self._send(Lane.BIND, request, _acknowledged)

    async def read_volume(self, name: str) -> Result[JsonObject]:
        """Read a complete PersistentVolume."""
        return await self._send(Lane.BIND, HttpRequest("GET", volume_path(name)), _whole)

    async def update_volume(self, volume: JsonObject) -> Result[JsonObject]:
        """Replace a PersistentVolume that was read before."""
        request = HttpRequest("PUT", volume_path(volume["metadata"]["name"]), encode(volume))
        return await self._send(Lane.BIND, request, _whole)

    async def post_event(self, namespace: str, body: bytes, api: EventsApi) -> Result[None]:
        """Create an event."""
        request = HttpRequest("POST", events_path(namespace, is_core=api is EventsApi.CORE), body)
        return await self._send(Lane.EVENT, request, _acknowledged)

    async def patch_event(self, namespace: str, name: str, body: bytes, api: EventsApi) -> Result[None]:
        """Update the count of an event that happened again."""
        path = events_path(namespace, name, is_core=api is EventsApi.CORE)
        request = HttpRequest("PATCH", path, body, STRATEGIC_PATCH)
        return await self._send(Lane.EVENT, request, _acknowledged)

    async def _send(self, lane: Lane, request: HttpRequest, read: Callable[[bytes], T]) -> Result[T]:
        if not has_names(request.path):
            return Refused(400, "BadRequest", f"there is no name to ask for in {visible(request.path)}")
        await self._lanes.enter(lane)
        try:
            answer = await self._sender.send(request)
            return Done(read(answer.body)) if answer.is_success else Refused.of(answer)
        except NoAnswerError as error:
            return Lost(error.reason, error.may_be_done)
        except (DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Lost(f"the server's answer is not readable: {error}", may_be_done=True)
        finally:
            self._lanes.leave(lane)


def _acknowledged(body: bytes) -> None:
    """Check that the API answered: a proxy may answer 200 to a write that never reached the server."""
    _ANSWER.decode(body)


def _seen_pod(body: bytes) -> SeenPod:
    thing = _POD.decode(body)
    meta, status = thing.metadata, thing.status
    return SeenPod(
        uid=meta.uid,
        version=meta.resource_version,
        node=thing.spec.node_name,
        nominated=status.nominated_node_name,
        generation=meta.generation,
        is_terminating=meta.deletion_timestamp is not None,
        conditions=tuple(condition.known() for condition in status.conditions or ()),
    )


def _seen_node(body: bytes) -> SeenNode:
    meta = _STORED.decode(body).metadata
    return SeenNode(meta.uid, meta.resource_version, meta.annotations or {})


def _whole(body: bytes) -> JsonObject:
    _STORED.decode(body)
    return _OBJECT.decode(body)


def _device_claim(body: bytes) -> JsonObject:
    """Decode a ResourceClaim, except for its `spec` and the devices in its status.

    These are sent back byte by byte: the server keeps parameters of drivers as text, and refuses a change.
    """
    _STORED.decode(body)
    parts = _PARTS.decode(body)
    claim: JsonObject = {name: part if name == "spec" else decode(part) for name, part in parts.items()}
    if claim.get("status"):
        of_status = _STATUS_PARTS.decode(parts["status"]) or {}
        users = "reservedFor"
        claim["status"] = {name: decode(part) if name == users else part for name, part in of_status.items()}
    return claim


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of a pod, or of one of its subresources."""
    path = f"{_CORE}/namespaces/{_quoted(namespace)}/pods/{_quoted(name)}"
    return f"{path}/{subresource}" if subresource else path


def node_path(name: str) -> str:
    """Return the path of a node."""
    return f"{_CORE}/nodes/{_quoted(name)}"


def claim_path(namespace: str, name: str) -> str:
    """Return the path of a PersistentVolumeClaim."""
    return f"{_CORE}/namespaces/{_quoted(namespace)}/persistentvolumeclaims/{_quoted(name)}"


def device_claims_path(namespace: str) -> str:
    """Return the path of the ResourceClaims of a namespace."""
    return f"{_DEVICES_GROUP}/namespaces/{_quoted(namespace)}/resourceclaims"


def device_claim_path(namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of a ResourceClaim, or of one of its subresources."""
    path = f"{device_claims_path(namespace)}/{_quoted(name)}"
    return f"{path}/{subresource}" if subresource else path


def volume_path(name: str) -> str:
    """Return the path of a PersistentVolume."""
    return f"{_CORE}/persistentvolumes/{_quoted(name)}"


def events_path(namespace: str, name: str = "", *, is_core: bool = False) -> str:
    """Return the path of the events of a namespace, or of one of them."""
    path = f"{_CORE if is_core else _EVENTS_GROUP}/namespaces/{_quoted(namespace)}/events"
    return f"{path}/{_quoted(name)}" if name else path


def has_names(path: str) -> bool:
    """Return whether a path leads to the named object: empty names and dots lead elsewhere."""
    return _NOWHERE.isdisjoint(path.split("/")[1:])


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quote(name, safe="")

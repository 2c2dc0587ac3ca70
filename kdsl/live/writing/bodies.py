"""Request bodies, as kube-scheduler sends them.

One difference is intended: a deletion and a patch contain the uid of their pod, so that a new pod of the same
name is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.json import encode

from kdsl.base.frozen_map import NO_STRINGS
from kdsl.base.times import to_microseconds, to_seconds
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.storage.claims import SELECTED_NODE
from kdsl.cluster.storage.volume_plan import BOUND_BY_CONTROLLER
from kdsl.live.writing.events import Event, EventsApi

_ESCAPES: Final = tuple((each.encode(), f"\\u{ord(each):04x}".encode()) for each in "<>&\u2028\u2029")

JsonObject = dict[str, Any]
"""An object of the API as plain JSON; volumes and claims are sent back with all fields, known or not."""


def binding(pod: PodInfo, node: str) -> bytes:
    """Build the body that binds a pod to a node; its uid is a precondition."""
    meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    target = {"kind": "Node", "name": node}
    return encode({"kind": "Binding", "apiVersion": "v1", "metadata": meta, "target": target})


def delete_options(uid: str) -> bytes:
    """Build the body that deletes the object with this uid, with its own grace period."""
    return encode({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}})


def status_patch(uid: str, status: Mapping[str, Any]) -> bytes:
    """Build a strategic merge patch of a pod's status."""
    return encode({"metadata": {"uid": uid}, "status": status})


def annotation_patch(
    annotations: Mapping[str, str],
    *,
    labels: Mapping[str, str] = NO_STRINGS,
    uid: str = "",
    version: str = "",
) -> bytes:
    """Build a merge patch of annotations and labels; an empty text as annotation removes one.

    `uid` and `version` are preconditions.
    """
    meta: JsonObject = {"annotations": {key: value or None for key, value in annotations.items()}}
    if labels:
        meta["labels"] = dict(labels)
    if version:
        meta["resourceVersion"] = version
    if uid:
        meta["uid"] = uid
    return encode({"metadata": meta})


def set_aside(volume: JsonObject, claim: JsonObject) -> JsonObject:
    """Return a PersistentVolume reserved for a claim."""
    meta = claim["metadata"]
    reference = {
        "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": "v1",
        "resourceVersion": meta["resourceVersion"],
    }
    spec = volume.get("spec") or {}
    changed = {**volume, "spec": {**spec, "claimRef": reference}}
    return changed if spec.get("claimRef") else annotated(changed, BOUND_BY_CONTROLLER, "yes")


def selected(claim: JsonObject, node: str) -> JsonObject:
    """Return a PersistentVolumeClaim that requests a volume near a node."""
    return annotated(claim, SELECTED_NODE, node)


def escaped(body: bytes) -> bytes:
    """Return JSON with the characters escaped that the API server escapes: it compares some parts as text."""
    for character, escape in _ESCAPES:
        body = body.replace(character, escape)
    return body


def annotated(thing: JsonObject, key: str, value: str) -> JsonObject:
    """Return an object with one more annotation."""
    meta = thing["metadata"]
    return {**thing, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), key: value}}}


def event(event: Event, name: str, made_at: int, api: EventsApi, count: int = 1, seen_at: int = 0) -> bytes:
    """Build an event; an event that happened `count` times, last at `seen_at`, has a series."""
    if api is EventsApi.CORE:
        return encode(_core_event(event, name, made_at, count, seen_at))
    about = event.regarding
    body: JsonObject = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": _event_meta(event, name),
        "eventTime": to_microseconds(made_at),
        "reportingController": event.controller,
        "reportingInstance": event.instance,
        "action": event.action,
        "reason": event.reason,
        "regarding": about.as_json(),
        "note": event.note,
        "type": event.type.value,
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    if count > 1:
        body["series"] = _series(count, seen_at)
    return encode(body)


def series_patch(count: int, seen_at: int, api: EventsApi) -> bytes:
    """Build a patch that sets the count of an event."""
    if api is EventsApi.CORE:
        return encode({"count": count, "lastTimestamp": to_seconds(seen_at)})
    return encode({"series": _series(count, seen_at)})


def _series(count: int, seen_at: int) -> JsonObject:
    return {"count": count, "lastObservedTime": to_microseconds(seen_at)}


def _event_meta(event: Event, name: str) -> JsonObject:
    meta: JsonObject = {"name": name, "namespace": event.namespace}
    if event.annotations:
        meta["annotations"] = dict(event.annotations)
    return meta


def _core_event(event: Event, name: str, made_at: int, count: int, seen_at: int) -> JsonObject:
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": _event_meta(event, name),
        "involvedObject": event.regarding.as_json(),
        "reason": event.reason,
        "message": event.note,
        "source": {"component": event.controller},
        "firstTimestamp": to_seconds(made_at),
        "lastTimestamp": to_seconds(max(made_at, seen_at)),
        "count": count,
        "type": event.type.value,
        "eventTime": None,
        "reportingComponent": event.controller,
        "reportingInstance": event.instance,
    }

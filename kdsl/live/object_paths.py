"""Paths of objects in the API server, with quoted names."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

EVENTS_GROUP: Final = "/apis/events.k8s.io/v1"
DEVICES_GROUP: Final = "/apis/resource.k8s.io/v1"
_CORE: Final = "/api/v1"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_NOWHERE: Final = frozenset(("", ".", ".."))


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
    return f"{DEVICES_GROUP}/namespaces/{_quoted(namespace)}/resourceclaims"


def device_claim_path(namespace: str, name: str, subresource: str = "") -> str:
    """Return the path of a ResourceClaim, or of one of its subresources."""
    path = f"{device_claims_path(namespace)}/{_quoted(name)}"
    return f"{path}/{subresource}" if subresource else path


def volume_path(name: str) -> str:
    """Return the path of a PersistentVolume."""
    return f"{_CORE}/persistentvolumes/{_quoted(name)}"


def events_path(namespace: str, name: str = "", *, is_core: bool = False) -> str:
    """Return the path of the events of a namespace, or of one of them."""
    path = f"{_CORE if is_core else EVENTS_GROUP}/namespaces/{_quoted(namespace)}/events"
    return f"{path}/{_quoted(name)}" if name else path


def has_names(path: str) -> bool:
    """Return whether a path leads to the named object: empty names and dots lead elsewhere."""
    return _NOWHERE.isdisjoint(path.split("/")[1:])


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")

"""Events in both their forms: core/v1, which is the stored form, and events.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import Resource

_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK: Final = {new: old for old, new in _NAMES.items()}


def is_converted(resource: Resource) -> bool:
    """Return whether a resource's objects are stored in another form."""
    return resource.group == "events.k8s.io"


def from_core(body: Json) -> Json:
    """Return a stored event in the form of events.k8s.io/v1."""
    return {_NAMES.get(name, name): value for name, value in body.items()}


def to_core(body: Json) -> Json:
    """Return the stored form of an event of events.k8s.io/v1."""
    return {_BACK.get(name, name): value for name, value in body.items()}

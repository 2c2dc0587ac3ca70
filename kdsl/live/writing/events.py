"""An event to be recorded: its object and its texts, within the limits of the API server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from kdsl.base.frozen_map import NO_STRINGS

MAX_NOTE: Final = 1024
"""Bytes of the longest note that the server accepts."""
_MAX_FIELD: Final = 128
_MAX_NAME: Final = 253
_CUT: Final = " ..."
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class EventType(StrEnum):
    """The type of an event: a warning needs attention."""

    NORMAL = "Normal"
    WARNING = "Warning"


class EventsApi(StrEnum):
    """The API that events are written to: `events.k8s.io/v1`, or core/v1 where it is missing."""

    EVENTS = "events.k8s.io/v1"
    CORE = "v1"


@dataclass(frozen=True, slots=True)
class Reference:
    """The object of an event, at the version known when it happened."""

    kind: str
    namespace: str
    name: str
    uid: str
    version: str = ""
    api_version: str = "v1"

    def as_json(self) -> dict[str, str]:
        """Return the reference as JSON of the API."""
        found = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.version,
        }
        return {key: value for key, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `annotations` are for tools; the texts are for people."""

    regarding: Reference
    type: EventType
    reason: str
    action: str
    note: str
    controller: str
    instance: str
    annotations: Mapping[str, str] = NO_STRINGS

    @staticmethod
    def of(
        regarding: Reference,
        type: EventType,
        reason: str,
        action: str,
        note: str,
        *,
        controller: str,
        host: str,
        annotations: Mapping[str, str] = NO_STRINGS,
    ) -> Event:
        """Make a valid event from any texts: long ones are cut."""
        return Event(
            regarding,
            type,
            cut(reason, _MAX_FIELD, ""),
            cut(action, _MAX_FIELD, ""),
            cut(note, MAX_NOTE),
            cut(controller, _MAX_FIELD, ""),
            cut(f"{controller}-{host}", _MAX_FIELD, ""),
            annotations,
        )

    @property
    def namespace(self) -> str:
        """Return the namespace that it is recorded in."""
        return self.regarding.namespace or "default"

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key that events of one series share; their notes may differ, but not in core/v1."""
        return self.type, self.action, self.reason, self.controller, self.instance, self.regarding


def event_name(regarding: str, time: int) -> str:
    """Return the name of an event about an object: it contains the time, in nanoseconds.

    If the result would be invalid, it is a UUID derived from both.
    """
    name = f"{regarding}.{time:x}"
    if len(name) <= _MAX_NAME and _DNS_NAME.fullmatch(name):
        return name
    return str(uuid5(NAMESPACE_OID, name))


def cut(text: str, limit: int, mark: str = _CUT) -> str:
    """Return a text of at most `limit` bytes of UTF-8, cut between characters and marked as cut.

    Lone surrogates, which have no UTF-8, are escaped.
    """
    if len(text) <= limit and text.isascii():
        return text
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) > limit:
        return encoded[: limit - len(mark)].decode("utf-8", "ignore") + mark
    return encoded.decode("utf-8")

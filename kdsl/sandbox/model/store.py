"""The server's storage: the present version of every object, and a bounded history for watches.

Objects are kept as encoded JSON, without `kind` and `apiVersion`; a write decodes, changes and encodes once,
and lists and watches only copy bytes. All of it belongs to the thread of the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.selectable import selectable_fields

Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""

FIRST_VERSION: Final = 1000
_METADATA_ORDER: Final = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences",
    "finalizers",
)  # fmt: skip

encode: Final = msgspec.json.Encoder().encode
decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode


class Version:
    """One version of one object."""

    __slots__ = ("data", "fields", "key", "labels", "number", "uid")

    def __init__(self, key: Key, number: int, body: Json) -> None:
        metadata = body["metadata"]
        self.key = key
        self.number = number
        self.uid: str = metadata.get("uid", "")
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.fields = selectable_fields(body)
        self.data = encode(body)

    def body(self) -> Json:
        """Return the object as a new dict, without `kind` and `apiVersion`."""
        found: Json = decode(self.data)
        return found


class Event:
    """One change of one object. `version` is the new version, for a deletion the last one."""

    __slots__ = ("frames", "number", "previous", "type", "version")

    def __init__(self, kind: str, version: Version, previous: Version | None) -> None:
        self.type = kind
        self.version = version
        self.previous = previous
        self.number = version.number
        self.frames: dict[object, bytes] = {}
        """Encoded frames, shared by all watchers with the same form."""


class Collection:
    """The objects of one resource, their history, and their watchers."""

    def __init__(self, resource: Resource, history: int, floor: int) -> None:
        self.resource = resource
        self.items: dict[Key, Version] = {}
        self.history: deque[Event] = deque()
        self.watchers: dict[object, Callable[[Event], None]] = {}
        self.compacted = floor
        """The newest number whose event, or an earlier one, is no longer in the history."""
        self._limit = history
        self._sorted: list[Key] | None = None

    def sorted_versions(self, namespace: str = "") -> list[Version]:
        """Return the present objects, by namespace and name."""
        if self._sorted is None:
            self._sorted = sorted(self.items)
        items = self.items
        if namespace:
            return [items[key] for key in self._sorted if key[0] == namespace]
        return [items[key] for key in self._sorted]

    def state_at(self, number: int, namespace: str) -> list[Version] | None:
        """Return the objects at a past number; None where the history does not reach back."""
        if number < self.compacted:
            return None
        items = dict(self.items)
        for event in reversed(self.history):
            if event.number <= number:
                break
            if event.previous is None:
                items.pop(event.version.key, None)
            else:
                items[event.version.key] = event.previous
        return [items[key] for key in sorted(items) if not namespace or key[0] == namespace]

    def record(self, event: Event) -> None:
        """Apply and store an event, and notify the watchers."""
        key = event.version.key
        if event.type == "DELETED":
            del self.items[key]
            self._sorted = None
        else:
            if event.previous is None:
                self._sorted = None
            self.items[key] = event.version
        self.history.append(event)
        if len(self.history) > self._limit:
            self.compacted = self.history.popleft().number
        for notify in list(self.watchers.values()):
            notify(event)

    def forget(self, number: int) -> None:
        """Drop the whole history."""
        self.history.clear()
        self.compacted = number


class Store:
    """All collections and the counter that they share."""

    def __init__(self, history: int = 32_768) -> None:
        self.number = FIRST_VERSION
        self._history = history
        self._floor = FIRST_VERSION - 1
        self._collections: dict[str, Collection] = {}

    def collection(self, resource: Resource) -> Collection:
        """Return the collection of a resource; resources with common objects share it."""
        found = self._collections.get(resource.collection)
        if found is None:
            found = self._collections[resource.collection] = Collection(resource, self._history, self._floor)
        return found

    def get(self, resource: Resource, key: Key) -> Version | None:
        """Return the present version of an object."""
        return self.collection(resource).items.get(key)

    def bodies(self, resource: Resource, namespace: str = "") -> Iterator[Json]:
        """Yield the objects of a resource as new dicts, by namespace and name."""
        for version in self.collection(resource).sorted_versions(namespace):
            yield version.body()

    def write(self, resource: Resource, key: Key, body: Json) -> Version:
        """Store a new version of an object, which may be new, and notify the watchers."""
        collection = self.collection(resource)
        previous = collection.items.get(key)
        version = self._next(key, body)
        collection.record(Event("ADDED" if previous is None else "MODIFIED", version, previous))
        return version

    def remove(self, resource: Resource, key: Key, body: Json) -> Version:
        """Remove an object, whose last state is `body`, and notify the watchers."""
        collection = self.collection(resource)
        previous = collection.items[key]
        version = self._next(key, body)
        collection.record(Event("DELETED", version, previous))
        return version

    def forget_history(self) -> None:
        """Drop all history: older watches get an error, objects stay."""
        self.number += 1
        for collection in self._collections.values():
            collection.forget(self.number)
        self._floor = self.number

    def _next(self, key: Key, body: Json) -> Version:
        self.number += 1
        body["metadata"]["resourceVersion"] = str(self.number)
        body["metadata"] = in_order(body["metadata"])
        return Version(key, self.number, body)


def in_order(metadata: Json) -> Json:
    """Return metadata with its fields in the API's order."""
    ordered: Json = {name: metadata[name] for name in _METADATA_ORDER if name in metadata}
    if len(ordered) != len(metadata):
        ordered.update((name, value) for name, value in metadata.items() if name not in ordered)
    return ordered

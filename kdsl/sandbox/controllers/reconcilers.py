"""The base of the sandbox's controllers: they receive changes and reconcile objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from kdsl.sandbox.model.errors import ApiError, Json
from kdsl.sandbox.model.resources import EVENTS, Resource
from kdsl.sandbox.model.store import Event, Key, Version
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.creating import add

_SETTLE_SECONDS: Final = 0.02
"""The time for which changes are gathered before a controller acts on them."""


class Reconciler:
    """Reconciles marked objects, one after the other. Subclasses define which ones and how."""

    watched: tuple[Resource, ...] = ()

    def __init__(self, world: SandboxState) -> None:
        self.world = world
        self._marked: dict[tuple[Resource, Key], None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Reconcile all present objects, and every change from now on."""
        for resource in self.watched:
            collection = self.world.store.collection(resource)
            for version in collection.sorted_versions():
                self.seen(resource, Event("ADDED", version, None))
            collection.watchers[self, resource] = self._listener(resource)
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Stop reconciling."""
        for resource in self.watched:
            self.world.store.collection(resource).watchers.pop((self, resource), None)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def seen(self, resource: Resource, event: Event) -> None:
        """Receive a change; marks the object unless a subclass overrides it."""
        self.mark(resource, event.version.key)

    def mark(self, resource: Resource, key: Key) -> None:
        """Schedule an object for `reconcile`."""
        self._marked[resource, key] = None
        self._wake.set()

    def reconcile(self, resource: Resource, key: Key) -> None:
        """Reconcile one object; an ApiError becomes an event of the object."""
        raise NotImplementedError

    def _listener(self, resource: Resource) -> Callable[[Event], None]:
        return lambda event: self.seen(resource, event)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            self._wake.clear()
            marked, self._marked = self._marked, {}
            for resource, key in marked:
                try:
                    self.reconcile(resource, key)
                except ApiError as error:
                    record_warning(self.world, resource, key, "FailedCreate", str(error))


def record_warning(world: SandboxState, resource: Resource, key: Key, reason: str, message: str) -> None:
    """Write a warning event about an object."""
    name = f"{key[1]}.{world.chance.numbers.getrandbits(64):016x}"
    stamp = world.chance.stamp()
    body: Json = {
        "metadata": {"name": name, "namespace": key[0] or "default"},
        "involvedObject": {
            "kind": resource.kind,
            "namespace": key[0],
            "name": key[1],
            "apiVersion": resource.api_version,
        },
        "reason": reason,
        "message": message[:1024],
        "source": {"component": "kdsl-sandbox"},
        "type": "Warning",
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }
    add(world, EVENTS, body)


def owner_of(resource: Resource, body: Json) -> Json:
    """Return the owner reference of an object as a controller."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owners_in(version: Version) -> list[Json]:
    """Return the owner references of an object."""
    if b'"ownerReferences"' not in version.data:
        return []
    found: list[Json] = version.body()["metadata"].get("ownerReferences") or []
    return found


class Dependents:
    """The objects of some resources by the uid of their owner."""

    def __init__(self) -> None:
        self.by_owner: dict[str, dict[tuple[Resource, Key], str]] = {}
        """By owner: its objects and their uids."""

    def take(self, resource: Resource, event: Event) -> Iterable[Json]:
        """Record a change of an object that may have owners; return the owners."""
        owners = owners_in(event.version)
        for owner in owners:
            held = self.by_owner.setdefault(owner["uid"], {})
            if event.type == "DELETED":
                held.pop((resource, event.version.key), None)
                if not held:
                    del self.by_owner[owner["uid"]]
            else:
                held[resource, event.version.key] = event.version.uid
        return owners

    def of(self, uid: str) -> list[tuple[Resource, Key]]:
        """Return the objects of an owner, by name."""
        return sorted(self.by_owner.get(uid, {}), key=lambda item: item[1])

"""The present objects of one resource, and the changes between two of their states.

A reflector feeds it. It returns only changes that concern the scheduling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from msgspec import Raw

from kdsl.live.watching.changes import LiveObject, ObjectChange, Verb
from kdsl.live.watching.decode import Identity, MalformedError, ObjectDecoder
from kdsl.live.watching.resources import ApiResource

Report: TypeAlias = Callable[[str], None]
"""Called for an object that cannot be read."""


class Known(NamedTuple):
    """An object and its identity."""

    uid: str
    version: str
    object: LiveObject


class Mirror:
    """The known objects of a resource, by key. Unreadable ones are reported and skipped."""

    def __init__(self, resource: ApiResource, report: Report, *, keeps_raw: bool = False) -> None:
        self.resource: Final = resource
        self._decoder = ObjectDecoder(resource)
        self._report = report
        self._keeps_raw = keeps_raw
        self._known: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def known(self) -> dict[str, Known]:
        """Return a copy of all known objects, by key."""
        return dict(self._known)

    def renew(self) -> None:
        """Keep the JSON of objects from now on: each counts as changed when it comes again."""
        self._keeps_raw = True
        self._known = {key: known._replace(version="") for key, known in self._known.items()}

    def put(self, raw: Raw | bytes) -> tuple[str, list[ObjectChange]]:
        """Store an existing object; return its version, empty without one, and the changes.

        An unchanged object causes no change.
        """
        identity = self._identified(raw)
        if identity is None:
            return "", []
        before = self._known.get(identity.key)
        if before is not None and before.uid == identity.uid and before.version == identity.version:
            return identity.version, []
        now = self._read(raw, identity)
        if now is None:
            if before is None or before.uid == identity.uid:
                return identity.version, []
            del self._known[identity.key]
            return identity.version, [self._dropped(identity.key, before, before.version, is_stale=True)]
        self._known[identity.key] = now
        return identity.version, list(self._changed(identity.key, before, now, raw))

    def drop(self, raw: Raw | bytes) -> tuple[str, list[ObjectChange]]:
        """Remove a deleted object; return its last version and the changes, as `put` does."""
        identity = self._identified(raw)
        if identity is None:
            return "", []
        before = self._known.get(identity.key)
        # The deleted object was unknown, or a new one of its name is known: nothing changes.
        if before is None or before.uid != identity.uid:
            return identity.version, []
        del self._known[identity.key]
        return identity.version, [self._dropped(identity.key, before, identity.version)]

    def replacement(self) -> Replacement:
        """Begin to collect a complete list; nothing changes until it is finished."""
        return Replacement(self)

    def _identified(self, raw: Raw | bytes) -> Identity | None:
        """Return the identity of an object; None, and a report, if it cannot be read."""
        try:
            return self._decoder.identify(raw)
        except MalformedError as error:
            self._report(str(error))
            return None

    def _read(self, raw: Raw | bytes, identity: Identity) -> Known | None:
        try:
            return Known(identity.uid, identity.version, self._decoder.decode(raw, identity))
        except MalformedError as error:
            self._report(str(error))
            return None

    def _changed(
        self, key: str, before: Known | None, now: Known, raw: Raw | bytes
    ) -> Iterator[ObjectChange]:
        if before is not None and before.uid != now.uid:
            yield self._dropped(key, before, before.version, is_stale=True)
        kept = bytes(raw) if self._keeps_raw else b""
        yield ObjectChange(Verb.PUT, self.resource.name, key, now.uid, now.version, now.object, raw=kept)

    def _dropped(self, key: str, known: Known, version: str, *, is_stale: bool = False) -> ObjectChange:
        return ObjectChange(Verb.DROP, self.resource.name, key, known.uid, version, known.object, is_stale)


class Replacement:
    """A complete list while it is received; it then replaces the objects of a mirror."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._objects: dict[str, tuple[Known, Raw | bytes]] = {}

    def add(self, raw: Raw | bytes) -> None:
        """Add an object of the list."""
        mirror = self._mirror
        identity = mirror._identified(raw)
        if identity is None:
            return
        before = mirror._known.get(identity.key)
        is_same = before is not None and before.uid == identity.uid
        if is_same and before is not None and before.version == identity.version:
            self._objects[identity.key] = before, b""
            return
        now = mirror._read(raw, identity)
        if now is not None:
            self._objects[identity.key] = now, bytes(raw) if mirror._keeps_raw else b""
        elif is_same and before is not None:
            # The object exists, but its new state is unreadable: keep the old state.
            self._objects[identity.key] = before, b""

    def remove(self, raw: Raw | bytes) -> None:
        """Remove an object that was deleted while the list was received."""
        identity = self._mirror._identified(raw)
        if identity is not None:
            self._objects.pop(identity.key, None)

    def finish(self) -> list[ObjectChange]:
        """Replace the mirror's objects; return the changes, deletions first."""
        mirror = self._mirror
        known, mirror._known = mirror._known, {key: now for key, (now, _) in self._objects.items()}
        gone = [
            mirror._dropped(key, before, before.version, is_stale=True)
            for key, before in known.items()
            if key not in self._objects
        ]
        changes = [
            change
            for key, (now, raw) in self._objects.items()
            if (before := known.get(key)) is not now
            for change in mirror._changed(key, before, now, raw)
        ]
        return gone + changes

"""A node that remembers what was read of it: who reads the same gets the same result without asking again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeVar

from kdsl.cluster.devices.pods import DeviceNode

V = TypeVar("V")

_MISSING: Final = object()


class _Watched(Mapping[str, V]):
    """A map that remembers which entries were asked for; `is_open` says that it may be any."""

    __slots__ = ("_entries", "is_open", "seen")

    def __init__(self, entries: Mapping[str, V]) -> None:
        self._entries = entries
        self.seen: dict[object, object] = {}
        self.is_open = False

    def __getitem__(self, key: str) -> V:
        self.seen[key] = self._entries.get(key, _MISSING)
        return self._entries[key]

    def __contains__(self, key: object) -> bool:
        self.seen[key] = self._entries.get(key, _MISSING)  # type: ignore[call-overload]  # as any map is asked
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        self.is_open = True
        return iter(self._entries)

    def __len__(self) -> int:
        self.is_open = True
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        self.is_open = True
        return self._entries == other

    __hash__ = None  # type: ignore[assignment]  # maps of nodes are no keys


class WatchedNode:
    """A node as device rules see it. Fields are those of the view `DeviceNode`."""

    __slots__ = ("_name", "annotations", "capacity", "is_named", "labels")

    def __init__(self, node: DeviceNode) -> None:
        self._name = node.name
        self.is_named = False
        self.labels = _Watched(node.labels)
        self.annotations = _Watched(node.annotations)
        self.capacity = _Watched(node.capacity)

    @property
    def name(self) -> str:
        self.is_named = True
        return self._name

    def seen(self) -> Seen | None:
        """Return what was read; None where that is not known, or is the node's name."""
        maps = (self.labels, self.annotations, self.capacity)
        if self.is_named or any(each.is_open for each in maps):
            return None
        return Seen(self.labels.seen, self.annotations.seen, self.capacity.seen)


class Seen:
    """What was read of a node."""

    __slots__ = ("_annotations", "_capacity", "_labels")

    @property
    def missing(self) -> tuple[frozenset[object], ...] | None:
        """The annotations, capacities and labels that were asked for; None where there were some of them."""
        maps = (self._annotations, self._capacity, self._labels)
        if any(value is not _MISSING for seen in maps for value in seen.values()):
            return None
        return tuple(map(frozenset, maps))

    def __init__(
        self,
        labels: Mapping[object, object],
        annotations: Mapping[object, object],
        capacity: Mapping[object, object],
    ) -> None:
        self._labels, self._annotations, self._capacity = labels, annotations, capacity

    def holds(self, node: DeviceNode) -> bool:
        """Tell whether the same would be read of another node."""
        return (
            _is_as_seen(self._annotations, node.annotations)
            and _is_as_seen(self._capacity, node.capacity)
            and _is_as_seen(self._labels, node.labels)
        )


class Absences:
    """Kinds of devices of which a node has nothing that has none of what their inventories look for."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._sought: tuple[frozenset[object], ...] = (frozenset(), frozenset(), frozenset())

    def note(self, kind: str, seen: Seen | None) -> None:
        """Take in what was read of a node that has nothing of a kind."""
        missing = None if seen is None or kind in self._kinds else seen.missing
        if missing is not None:
            self._kinds.add(kind)
            self._sought = tuple(all_ | more for all_, more in zip(self._sought, missing, strict=True))

    def of(self, node: DeviceNode) -> Collection[str]:
        """Return kinds of which the node has nothing."""
        maps = (node.annotations, node.capacity, node.labels)
        lacks = all(sought.isdisjoint(entries) for sought, entries in zip(self._sought, maps, strict=True))
        return self._kinds if lacks else ()


def _is_as_seen(seen: Mapping[object, object], entries: Mapping[str, V]) -> bool:
    asked: Mapping[Any, object] = entries
    return all(asked.get(key, _MISSING) == value for key, value in seen.items())

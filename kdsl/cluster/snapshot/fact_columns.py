"""The facts of nodes as dictionary-encoded columns, made at first use and updated by row.

There is one column per field, and one per key of a map that rules read (a label, an image). The lists that
the pods on a node fill, such as used host ports, have columns, too. A column holds a code per row and the
value of each code. Only changed nodes are encoded again. Rules, tallies and plugins read them: the domains of
a topology are the column of a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, repeat
from operator import attrgetter, is_
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.base.kept import Kept
from kdsl.cluster.objects.node import FACTS
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows

ABSENT: Final = 0
"""The code of an absent value: a missing key of a map, or a row without a node."""

MAX_KEYS = 256
"""The most columns by key; the least recently used one goes first."""

_SPARE: Final = 1024
"""The spare values above twice the rows; beyond that the column is encoded from scratch."""

OF_PODS: Final = frozenset(("used_host_ports", "used_volumes"))
"""The attributes with a column that are not facts, but lists that the pods on a node fill."""

MAX_DISTINCT: Final = 16
"""The most values of one node in a column of the values of its pods."""

K = TypeVar("K")

Value: TypeAlias = Any
"""The value of a fact; hashable."""
Read: TypeAlias = Callable[[LiveSnapshot, Rows], Sequence[Value]]
"""Returns a column's values for the nodes of some rows, None for absent ones."""


class FactColumn:
    """One column. Row `i` has `values[codes[i]]`, where `values[0]` stands for `ABSENT`. `numbers` are the
    codes by value.

    `image` names the image of the column, if it is one: few nodes have it, and it may change without a change
    of the node's own facts. `of_pods` is true for attributes that change with the pods on the node.

    INVARIANT: a code stands for the same value as long as `numbers` is the same object.
    """

    def __init__(self, read: Read, image: str | None = None, of_pods: bool = False) -> None:
        self._read = read
        self._image = image
        self._of_pods = of_pods
        self._position = self._images = -1
        self._usage = 0
        self._order: Rows = np.zeros(0, np.intp)
        self._is_everywhere: bool | None = None
        self._nodes: NDArray[np.int64] | None = None
        self._forget()

    def _forget(self) -> None:
        self.codes: NDArray[np.int32] = np.zeros(0, np.int32)
        self.values: list[Value] = [None]
        self.numbers: dict[Value, int] = {None: ABSENT}
        self.kept = Kept(self)
        """Objects derived from the values, such as the items of lists, by class; new codes drop them."""

    def digit(self, rows: Rows) -> tuple[NDArray[np.int32], int]:
        """Return the codes of some rows, and the number of codes."""
        return self.codes.take(rows), len(self.values)

    @property
    def is_everywhere(self) -> bool:
        """Return whether every node has a value."""
        if self._is_everywhere is None:
            codes = self.codes.take(self._order)
            self._is_everywhere = bool((codes != ABSENT).all())
        return self._is_everywhere

    @property
    def is_constant(self) -> bool:
        """Return whether all nodes are known to have one value, or to have none."""
        known = len(self.values)
        return known == 1 or (known == 2 and self.is_everywhere)

    def nodes_by_code(self) -> NDArray[np.int64]:
        """Return the number of nodes with each value, by its code; 0 for `ABSENT`. Do not change it."""
        if self._nodes is None:
            self._nodes = np.bincount(self.codes, minlength=len(self.numbers))
            self._nodes[ABSENT] = 0
        return self._nodes

    def refresh(self, snapshot: LiveSnapshot) -> None:
        """Encode the rows that changed since the last time."""
        changes, images = snapshot.fact_changes, snapshot.images_version
        position, has_other_images = changes.position, self._image is not None and self._images != images
        usage = snapshot.usage_changes.position if self._of_pods else 0
        is_known = self._position == position and self._usage == usage
        if is_known and self._order is snapshot.order and not has_other_images:
            return
        changed = None if has_other_images else changes.since(self._position)
        if self._of_pods and changed is not None:
            used = snapshot.usage_changes.since(self._usage)
            changed = None if used is None else changed + used
        if changed != [] or self._order is not snapshot.order:
            self._order, self._is_everywhere, self._nodes = snapshot.order, None, None
        rows = len(snapshot.names)
        if changed and len(self.values) > 2 * rows + _SPARE:
            self._forget()
            changed = None
        missing = rows - len(self.codes)
        if missing > 0:
            self.codes = np.concatenate((self.codes, np.zeros(missing, np.int32)))
        if changed is None:
            self.codes[:] = ABSENT
            if self._image is None:
                self._encode(snapshot.order, self._read(snapshot, snapshot.order))
            else:
                self._encode(*snapshot.image(self._image))
        elif changed:
            self.codes[changed] = ABSENT
            taken = np.array([row for row in dict.fromkeys(changed) if snapshot.names[row]], np.intp)
            self._encode(taken, self._read(snapshot, taken))
        # Last: what failed, or was noted meanwhile, is read again.
        self._position, self._images, self._usage = position, images, usage

    def _encode(self, rows: Rows, values: Sequence[Value]) -> None:
        """Encode the values of some rows."""
        numbers = self.numbers
        if values and all(map(is_, values, repeat(values[0]))):
            # Most often of all: nodes share one object.
            (only,) = values[:1]
            if only not in numbers:
                numbers[only] = len(numbers)
                self.values.append(only)
            self.codes[rows] = numbers[only]
            return
        # Texts know their hashes. Of other values many nodes share one object, which is hashed once; `values`
        # keeps each id valid.
        are_texts = bool(values) and values[0].__class__ is str
        keys = values if are_texts else [*map(id, values)]
        distinct = dict(zip(keys, values, strict=True))
        new = [value for value in dict.fromkeys(distinct.values()) if value not in numbers]
        numbers.update(zip(new, count(len(numbers)), strict=False))
        self.values += new
        codes = numbers if are_texts else {key: numbers[value] for key, value in distinct.items()}
        self.codes[rows] = np.fromiter(map(codes.__getitem__, keys), np.int32, len(rows))


class FactColumns:
    """The fact columns of one live snapshot, shared by all rules. Thread-safe."""

    def __init__(self, snapshot: LiveSnapshot) -> None:
        self.snapshot = snapshot
        self._lock = Lock()
        self._fields: dict[str, FactColumn] = {}
        self._keys: dict[tuple[str, str], FactColumn] = {}
        self._of_pods: dict[tuple[str, ...], FactColumn] = {}

    @staticmethod
    def of(snapshot: LiveSnapshot) -> FactColumns:
        """Return the columns that are kept with a snapshot."""
        facts: FactColumns = snapshot.kept[FactColumns]
        return facts

    def field(self, attribute: str) -> FactColumn:
        """Return the column of an attribute of nodes."""
        return self._current(self._fields, attribute, _attribute, attribute in OF_PODS)

    def key(self, attribute: str, key: str) -> FactColumn:
        """Return the column of the key `key` of the map `attribute` of nodes."""
        place = (attribute, key)
        with self._lock:
            column = self._keys.pop(place, None)
            if column is None:
                column = FactColumn(_entries(attribute, key), key if attribute == "images" else None)
            self._keys[place] = column
            if len(self._keys) > MAX_KEYS:
                del self._keys[next(iter(self._keys))]
            column.refresh(self.snapshot)
            return column

    def of_pods(self, attributes: tuple[str, ...]) -> FactColumn:
        """Return the column of the distinct values of some attributes of the pods on each node; a node with
        more than `MAX_DISTINCT` has none.
        """
        return self._current(self._of_pods, attributes, _distinct, True)

    def _current(
        self, columns: dict[K, FactColumn], place: K, reader_of: Callable[[K], Read], of_pods: bool
    ) -> FactColumn:
        """Return the column of a place as it is now."""
        with self._lock:
            column = columns.get(place)
            if column is None:
                column = columns[place] = FactColumn(reader_of(place), of_pods=of_pods)
            column.refresh(self.snapshot)
            return column


def _distinct(attributes: tuple[str, ...]) -> Read:
    """Return a reader of the distinct values of some attributes of pods, None for many."""
    read = attrgetter(*attributes)
    return lambda snapshot, rows: [
        found if len(found := frozenset(map(read, node.pods))) <= MAX_DISTINCT else None
        for node in snapshot.infos(rows)
    ]


def _entries(attribute: str, key: str) -> Read:
    """Return a reader of one entry of a map of nodes."""
    if attribute == "labels":
        return lambda snapshot, rows: [
            labels.get(key) for labels in map(snapshot.labels.__getitem__, rows.tolist())
        ]
    maps_of = _attribute(attribute)
    return lambda snapshot, rows: [found.entries.get(key) for found in maps_of(snapshot, rows)]


def _attribute(name: str) -> Read:
    """Return a reader of an attribute of nodes, from `facts` if possible: a property costs twice as much."""
    read: Callable[[object], Value] = attrgetter(name)
    if name in FACTS:
        return lambda snapshot, rows: list(map(read, [node.facts for node in snapshot.infos(rows)]))
    return lambda snapshot, rows: list(map(read, snapshot.infos(rows)))

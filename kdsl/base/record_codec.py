"""Frozen records to bytes and back, for the cache on disk: a format that holds values and cannot run code.

The encoding is JSON: `{"classes": […], "scalars": […], "groups": […]}`. A group is a kind, then a row for
each of its records: the places of the parts. Places count scalars first, then given records, then those of
the groups, each in a later group than its parts; the last one is the value. So shared parts stay shared, both
directions are loops, whatever the depth, and a field is set for all records of a group at once. Given records
are not encoded: both sides have them, such as the parts that two values share.

A codec reads and writes only the classes that it is made with. They are dataclasses and enumerations.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib import import_module
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

_Make: TypeAlias = Callable[[Iterator[Any]], object]

# INVARIANT: kinds below the number of containers are containers, the others are classes in their order.
_CONTAINERS: Final[Mapping[type, _Make]] = {
    tuple: tuple,
    frozenset: frozenset,
    list: list,
    bytes: lambda parts: "".join(parts).encode("latin-1"),
    dict: lambda parts: dict(zip(parts, parts, strict=True)),
    MappingProxyType: lambda parts: MappingProxyType(dict(zip(parts, parts, strict=True))),
}
_KINDS: Final = {kind: number for number, kind in enumerate(_CONTAINERS)}
_SCALARS: Final[frozenset[type]] = frozenset((str, int, float, bool, type(None)))
MISREAD: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, AssertionError)
"""The exceptions that data of another shape may raise during reading."""


class UnknownRecordError(TypeError):
    """A value holds an object of a class that the codec does not handle."""


@dataclass(frozen=True, slots=True)
class RecordCodec:
    """Encodes and decodes values of the dataclasses and enumerations that `modules` define.

    A module is imported when the first record of its classes is read.
    """

    modules: Sequence[str]

    def encode(self, value: object, given: Sequence[object] = ()) -> bytes:
        """Return the bytes of a value without the parts that are `given`.

        Raises UnknownRecordError where another part of it is of another class.
        """
        return _Encoder(self.modules, given).encode(value)

    def decode(self, content: bytes, given: Sequence[object] = ()) -> object:
        """Return the value of some bytes, with its `given` parts.

        Raises ValueError where they are not an encoding of this codec.
        """
        try:
            return self._decode(json.loads(content), given)
        except MISREAD as error:
            raise ValueError("these bytes hold no records") from error

    def _decode(self, table: Any, given: Sequence[object]) -> object:
        kinds = [*_CONTAINERS, *map(self._class, table["classes"])]
        values: list[Any] = list(table["scalars"])
        if not all(type(value) in _SCALARS for value in values):
            raise ValueError("a scalar is none")
        values += given
        for kind, *rows in table["groups"]:
            if min(chain((kind,), *rows)) < 0:
                raise ValueError("a place is none")
            values += _made(kinds[kind], rows, values)
        return values[-1]

    def _class(self, name: Any) -> type:
        """Return the class of this qualified name. Its module must be one of the codec's modules."""
        module, _, class_name = name.rpartition(".")
        if module in self.modules:
            kind = getattr(import_module(module), class_name)
            if isinstance(kind, type) and kind.__module__ == module and _is_record(kind):
                return kind
        raise ValueError(f"{name} is no record of this codec")


_Group: TypeAlias = list[tuple[object, list[Any]]]
"""Records, each with its parts: places of scalars, and other records."""


class _Encoder:
    """The tables of one encoded value."""

    def __init__(self, modules: Sequence[str], given: Sequence[object]) -> None:
        self._modules = modules
        self._given = given
        self._classes: list[type] = []
        self._kinds: dict[type, int] = {**_KINDS}
        self._scalars: list[object] = []
        self._places: dict[type, dict[object, int]] = {kind: {} for kind in _SCALARS}

    def encode(self, value: object) -> bytes:
        groups = self._groups(value)
        placed = chain(self._given, (record for group in groups for record, _ in group))
        numbers = {id(record): number for number, record in enumerate(placed, len(self._scalars))}
        rows = []
        for group in groups:
            row: list[Any] = [self._kind(type(group[0][0]))]
            row += [
                [part if part.__class__ is int else numbers[id(part)] for part in parts] for _, parts in group
            ]
            rows.append(row)
        classes = [f"{kind.__module__}.{kind.__name__}" for kind in self._classes]
        table = {"classes": classes, "scalars": self._scalars, "groups": rows}
        return json.dumps(table, separators=(",", ":")).encode()

    def _groups(self, value: object) -> list[_Group]:
        """Return the records of a value by their height and class: the parts of a record are lower."""
        heights = {id(record): 0 for record in self._given}
        found: dict[tuple[int, type], _Group] = {}
        opened: dict[int, list[Any]] = {}
        scalars = self._places
        whole = self._placed(value)
        todo = [] if whole.__class__ is int else [whole]
        while todo:
            record = todo.pop()
            key = id(record)
            if key in heights:
                continue
            kind: Any = type(record)
            begun = opened.pop(key, None)
            # Most scalars are known: a call for each of them would take a seventh of the time.
            parts = begun or [
                part
                if (known := scalars.get(part.__class__)) is None
                else known[part]
                if part in known
                else self._placed(part)
                for part in _parts_of(kind)(record)
            ]
            height, lower = 0, []
            for part in parts:
                if part.__class__ is not int:
                    of_part = heights.get(id(part))
                    if of_part is None:
                        lower.append(part)
                    elif of_part > height:
                        height = of_part
            if lower and begun is None:
                opened[key] = parts
                todo += (record, *lower)
                continue
            heights[key] = height + 1
            found.setdefault((height, kind), []).append((record, parts))
        return [found[key] for key in sorted(found, key=itemgetter(0))]

    def _placed(self, part: object) -> Any:
        """Return the place of a scalar; other parts themselves."""
        known = self._places.get(part.__class__)
        if known is None:
            return part
        # Floats by their text: equal ones may differ (0.0 and -0.0), and NaN is not equal to itself.
        key = repr(part) if part.__class__ is float else part
        place = known.get(key)
        if place is None:
            place = known[key] = len(self._scalars)
            self._scalars.append(part)
        return place

    def _kind(self, kind: type) -> int:
        """Return the number of a class, which may be new."""
        number = self._kinds.get(kind)
        if number is None:
            if kind.__module__ not in self._modules or not _is_record(kind):
                raise UnknownRecordError(f"{kind.__module__}.{kind.__qualname__} is no record of this codec")
            number = self._kinds[kind] = len(self._kinds)
            self._classes.append(kind)
        return number


@lru_cache(1024)
def _parts_of(kind: Any) -> Callable[[Any], Iterable[object]]:
    """Return a function that lists the parts of a record of a class. Those of a set come in the order of its
    iteration.
    """
    if issubclass(kind, Enum):
        return lambda record: (record.name,)
    if issubclass(kind, bytes):
        return lambda record: (record.decode("latin-1"),)
    if issubclass(kind, dict | MappingProxyType):
        return lambda record: chain.from_iterable(record.items())
    if issubclass(kind, tuple | list | frozenset):
        return iter
    names = _fields_of(kind)
    return attrgetter(*names) if len(names) > 1 else lambda record: [getattr(record, name) for name in names]


def _fields_of(kind: type[Any]) -> Sequence[str]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _is_record(kind: type) -> bool:
    return issubclass(kind, Enum) or is_dataclass(kind)


def _made(kind: Any, rows: list[Any], values: list[Any]) -> list[Any]:
    """Return the records of a kind whose parts stand at these places of `values`."""
    get = values.__getitem__
    if kind in _CONTAINERS:
        make = _CONTAINERS[kind]
        return [make(map(get, row)) for row in rows]
    if issubclass(kind, Enum):
        return [kind[get(place)] for (place,) in rows]
    # The constructor is not called: it computes some fields, which are parts like the others.
    records = [object.__new__(kind) for _ in rows]
    for name, places in zip(_fields_of(kind), zip(*rows, strict=True), strict=True):
        deque(map(object.__setattr__, records, repeat(name), map(get, places)), maxlen=0)
    return records

"""Frozen records to bytes and back, for the cache on disk: a format that holds values and cannot run code.

The encoding is JSON: `{"classes": […], "scalars": […], "nodes": […]}`. A node is a list of integers: its
kind, then the places of its parts. Places count scalars first, then nodes, each after its parts; the last one
is the value. So both directions are loops, whatever the depth, and shared parts stay shared.

A codec reads and writes only the classes that it is made with. They are dataclasses and enumerations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib import import_module
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

_Make: TypeAlias = Callable[[list[Any]], object]

# INVARIANT: kinds below the number of containers are containers, the others are classes in their order.
_CONTAINERS: Final[Mapping[type, _Make]] = {
    tuple: tuple,
    frozenset: frozenset,
    list: list,
    bytes: lambda parts: parts[0].encode("latin-1"),
    dict: lambda parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    MappingProxyType: lambda parts: MappingProxyType(dict(zip(parts[::2], parts[1::2], strict=True))),
}
_KINDS: Final = {kind: number for number, kind in enumerate(_CONTAINERS)}
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
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

    def encode(self, value: object) -> bytes:
        """Return the bytes of a value. Raises UnknownRecordError where part of it is of another class."""
        return _Encoder(self.modules).encode(value)

    def decode(self, content: bytes) -> object:
        """Return the value of some bytes. Raises ValueError where they are not an encoding of this codec."""
        try:
            return self._decode(json.loads(content))
        except MISREAD as error:
            raise ValueError("these bytes hold no records") from error

    def _decode(self, table: Any) -> object:
        makers = [*_CONTAINERS.values(), *(_maker(self._class(name)) for name in table["classes"])]
        values: list[Any] = list(table["scalars"])
        if not all(type(value) in _SCALARS for value in values):
            raise ValueError("a scalar is none")
        for node in table["nodes"]:
            if min(node) < 0:
                raise ValueError("a place is none")
            kind, *places = node
            values.append(makers[kind]([values[place] for place in places]))
        return values[-1]

    def _class(self, name: Any) -> type:
        """Return the class of this qualified name. Its module must be one of the codec's modules."""
        module, _, class_name = name.rpartition(".")
        if module in self.modules:
            kind = getattr(import_module(module), class_name)
            if isinstance(kind, type) and kind.__module__ == module and _is_record(kind):
                return kind
        raise ValueError(f"{name} is no record of this codec")


class _Encoder:
    """The tables of one encoded value."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._classes: list[type] = []
        self._kinds: dict[type, int] = {**_KINDS}
        self._scalars: list[object] = []
        self._places: dict[object, int] = {}

    def encode(self, value: object) -> bytes:
        records = self._in_order(value)
        numbers = {id(record): number for number, (record, _) in enumerate(records, len(self._scalars))}
        nodes = [
            [
                self._kind(type(record)),
                *[part if part.__class__ is int else numbers[id(part)] for part in parts],
            ]
            for record, parts in records
        ]
        classes = [f"{kind.__module__}.{kind.__name__}" for kind in self._classes]
        table = {"classes": classes, "scalars": self._scalars, "nodes": nodes}
        return json.dumps(table, separators=(",", ":")).encode()

    def _in_order(self, value: object) -> list[tuple[object, list[object]]]:
        """Return the records of a value, each once and after its parts; in place of a scalar among the parts
        stands its place.
        """
        seen: set[int] = set()
        found: list[tuple[object, list[object]]] = []
        todo: list[tuple[object, list[object] | None]] = [(self._placed(value), None)]
        while todo:
            each, parts = todo.pop()
            if parts is not None:
                found.append((each, parts))
            elif each.__class__ is not int and id(each) not in seen:
                seen.add(id(each))
                kind: Any = type(each)
                parts = [*map(self._placed, _parts_of(kind)(each))]
                todo.append((each, parts))
                todo += [(part, None) for part in reversed(parts)]
        return found

    def _placed(self, part: object) -> object:
        """Return the place of a scalar; other parts themselves."""
        if part.__class__ not in _SCALARS:
            return part
        place = self._places.setdefault(_key(part), len(self._scalars))
        if place == len(self._scalars):
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


def _key(scalar: object) -> object:
    """Return a key that is equal for equal scalars of one type."""
    if scalar.__class__ is str:
        return scalar
    # The key of a float is its text: equal floats may differ (0.0 and -0.0), and NaN is not equal to itself.
    return scalar.__class__, repr(scalar) if scalar.__class__ is float else scalar


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


def _maker(kind: type[Any]) -> _Make:
    """Return a function that builds a record from its parts."""
    if issubclass(kind, Enum):
        return lambda parts: kind[parts[0]]
    names = _fields_of(kind)

    def make(parts: list[Any]) -> object:
        # The constructor is not called: it computes some fields, which are parts like the others.
        record = object.__new__(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(record, name, part)
        return record

    return make

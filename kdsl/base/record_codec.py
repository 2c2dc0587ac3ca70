"""Frozen records to bytes and back, for the cache on disk: a format that holds values and cannot run code.

The encoding is JSON: `{"classes": […], "scalars": […], "nodes": […]}`. A node is a list of integers: its
kind, then the places of its parts. Places count scalars first, then nodes, each after its parts; the last one
is the value. So both directions are loops, whatever the depth, and shared parts stay shared.

A codec reads and writes only the classes that it is made with. They are dataclasses and enumerations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib import import_module
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
_SCALARS: Final = (str, int, float, bool, type(None))
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
        self._classes: dict[type, int] = {}
        self._scalars: list[Any] = []
        self._places: dict[object, int] = {}

    def encode(self, value: object) -> bytes:
        records = list(self._in_order(value))
        for place, record in enumerate(records, len(self._scalars)):
            self._places[id(record)] = place
        nodes = [
            [self._kind(type(record)), *(self._places[_key(part)] for part in _parts(record))]
            for record in records
        ]
        classes = [f"{kind.__module__}.{kind.__name__}" for kind in self._classes]
        table = {"classes": classes, "scalars": self._scalars, "nodes": nodes}
        return json.dumps(table, separators=(",", ":")).encode()

    def _in_order(self, value: object) -> Iterator[object]:
        """Yield the records of a value, each once and after its parts; assign places to the scalars."""
        seen: set[int] = set()
        todo: list[tuple[object, bool]] = [(value, False)]
        while todo:
            each, has_parts_behind = todo.pop()
            if type(each) in _SCALARS:
                if self._places.setdefault(_key(each), len(self._scalars)) == len(self._scalars):
                    self._scalars.append(each)
            elif has_parts_behind:
                yield each
            elif id(each) not in seen:
                seen.add(id(each))
                todo.append((each, True))
                todo += ((part, False) for part in reversed(_parts(each)))

    def _kind(self, kind: type) -> int:
        container = _KINDS.get(kind)
        if container is not None:
            return container
        if kind.__module__ not in self._modules or not _is_record(kind):
            raise UnknownRecordError(f"{kind.__module__}.{kind.__qualname__} is no record of this codec")
        return len(_CONTAINERS) + self._classes.setdefault(kind, len(self._classes))


def _key(part: object) -> object:
    """Return a key that is equal for equal scalars of one type; the key of a record is its identity."""
    if type(part) is float:
        # The key is the text: equal floats may differ (0.0 and -0.0), and NaN is not equal to itself.
        return float, repr(part)
    return (type(part), part) if type(part) in _SCALARS else id(part)


def _parts(record: object) -> Sequence[object]:
    """Return the parts of a record. The parts of a set come in the order of its iteration."""
    if isinstance(record, Enum):
        return (record.name,)
    if isinstance(record, bytes):
        return (record.decode("latin-1"),)
    if isinstance(record, dict | MappingProxyType):
        return [part for item in record.items() for part in item]
    if isinstance(record, tuple | list | frozenset):
        return list(record)
    kind: Any = type(record)
    return [getattr(record, name) for name in _fields_of(kind)]


@lru_cache(1024)
def _fields_of(kind: type[Any]) -> Sequence[str]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _is_record(kind: type) -> bool:
    return issubclass(kind, Enum) or is_dataclass(kind)


def _maker(kind: Any) -> _Make:
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

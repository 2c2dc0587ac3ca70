"""The types of the language: CEL's, and the opaque and view types that views declare.

`dyn` is assignable to and from all types. `error` is the type of an expression with a reported error, and
causes no further reports. `nothing` is the item type of an empty list: it is assignable to all types, and its
join with a type is that type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


@dataclass(frozen=True, slots=True)
class Type:
    """A type and its arguments.

    `list(string)` is `Type("list", (STRING,))`. A view type is named as in the views file.
    """

    name: str
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return self.name if not self.args else f"{self.name}({', '.join(map(str, self.args))})"


BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null_type")
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
TYPE = Type("type")
DYN = Type("dyn")
ERROR = Type("error")
NOTHING = Type("nothing")
QUANTITY = Type("quantity")
RESOURCES = Type("resources")
SEMVER = Type("semver")
IP = Type("ip")
CIDR = Type("cidr")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(item: Type) -> Type:
    return Type("optional", (item,))


def parameter(name: str) -> Type:
    """A type parameter of an overload, such as `T` in `list(T)`.

    Its name is a capital letter behind a `'`.
    """
    return Type(f"'{name}")


class BindingTime(IntEnum):
    """The time at which a value is known; an expression is known when the latest of its parts is.

    Facts of the whole cluster are known before any node is evaluated.
    """

    STATIC = 0
    POD = 1
    CLUSTER = 2
    NODE = 3
    USAGE = 4
    QUEUE = 5
    SCORES = 6

    @property
    def is_lasting(self) -> bool:
        """Return whether the value is the same for all nodes of an attempt."""
        return self <= BindingTime.CLUSTER

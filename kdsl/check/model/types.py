"""The types of the language: CEL's, plus the opaque and view types that views declare.

`dyn` is assignable to and from everything; `error` is the type of an expression already reported, and stays
silent; `nothing` is what an empty list holds: it is assignable to everything and adds nothing to what it is
joined with.
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
    """When a value is known; an expression is known when the latest of its parts is.

    What the cluster as a whole tells is known before any of its nodes is looked at.
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
        """Tell whether the value is the same for all nodes of an attempt."""
        return self <= BindingTime.CLUSTER

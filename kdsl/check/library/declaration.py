"""The form of a declared function: a name, a doc line and overloads as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.check.model.signature import parse_signature
from kdsl.check.model.types import Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. A member has its target first in `args`; the last of a variadic one may repeat."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool
    variadic: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A function, operator or member by its CEL name, such as `size`, `_+_` or `math.greatest`."""

    name: str
    doc: str
    overloads: tuple[Overload, ...]


def declare(name: str, doc: str, overloads: Mapping[str, str]) -> Function:
    """Return the function with the overloads `id -> signature`; see `parse_signature` for their form."""
    return Function(
        name, doc, tuple(Overload(overload, *parse_signature(text)) for overload, text in overloads.items())
    )

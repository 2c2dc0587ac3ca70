"""The form of a declared function: a name, a doc line and overloads as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.check.model.notation import parse_signature
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


def declare(name: str, doc: str, *overloads: str | Mapping[str, str]) -> Function:
    """Return the function with some overloads: signatures in the form of `parse_signature`, or mappings of
    ids to them for overloads with a known id. Other ids are made of name and signature.
    """
    found: dict[str, str] = {}
    for each in overloads:
        found |= {f"{name} {each}": each} if isinstance(each, str) else each
    return Function(name, doc, tuple(Overload(id_, *parse_signature(text)) for id_, text in found.items()))

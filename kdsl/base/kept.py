"""Objects that are derived from an owner, made at first use, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Owner(Protocol):
    """An object with `kept`: what is derived from it, by class."""

    kept: dict[object, Any]


OwnerT = TypeVar("OwnerT", bound=Owner)
T = TypeVar("T")


def kept_with(owner: OwnerT, kind: Callable[[OwnerT], T]) -> T:
    """Return the object of a class that is kept with its owner. Threads that make it at once share one."""
    found = owner.kept.get(kind)
    if found is None:
        found = owner.kept.setdefault(kind, kind(owner))
    kept: T = found
    return kept

"""Objects that are derived from an owner, made at first use, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Kept(dict[object, Any]):
    """The objects that are derived from an owner, by class: a class is called with the owner at first use.

    Threads that need an object at once share one. Other keys are for objects that the caller makes.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: object) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, kind: Callable[[Any], object]) -> object:
        return self.setdefault(kind, kind(self._owner))

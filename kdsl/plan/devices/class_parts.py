"""The parts of a node class, and their numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.plan.devices.identity import IdentityAnswer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class LikeNodes:
    """Nodes that are alike for a kind of device, beside identity tests and choosers.

    `fullness` is that of all their cards, `facts` are the node's that decide which cards fit. `cards` has for
    each card of the kind the number of its shape with the facts that decide about it.
    """

    fullness: np.float32
    facts: Hashable
    cards: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """The answers of identity tests about the cards of a node, and the number of each."""

    answers: tuple[IdentityAnswer, ...]
    numbers: NDArray[np.int64]


class Numbers(Generic[K, V]):
    """The numbers of values, from 0, and an object for each."""

    def __init__(self) -> None:
        self.objects: list[V] = []
        self._numbers: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def find(self, value: K) -> int | None:
        """Return the number of a value, None for a new one."""
        return self._numbers.get(value)

    def put(self, value: K, thing: V) -> int:
        """Return the number of a value; a new value gets the next one, with this object."""
        number = self._numbers.setdefault(value, len(self.objects))
        if number == len(self.objects):
            self.objects.append(thing)
        return number


def numbered(numbers: dict[K, int], values: Iterable[K]) -> NDArray[np.int64]:
    """Return the number of each value; new values get the next ones."""
    return np.array([numbers.setdefault(each, len(numbers)) for each in values], np.int64)

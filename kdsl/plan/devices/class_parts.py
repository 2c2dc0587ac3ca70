"""The parts of a node class, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdsl.plan.devices.identity import IdentityAnswer
from kdsl.plan.devices.placing import is_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class NodeShapes:
    """Nodes whose cards have equal shapes: the fill level, and of each card its type and the number of its
    shape.
    """

    fullness: np.float32
    types: tuple[str, ...]
    cards: NDArray[np.int64]
    _by_kind: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def of_kind(self, kind: str) -> NDArray[np.int64]:
        """Return the places of the cards of a kind."""
        found = self._by_kind.get(kind)
        if found is None:
            found = np.array([is_of(each, kind) for each in self.types], np.bool_).nonzero()[0]
            self._by_kind[kind] = found
        return found


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """The answers of identity tests about the cards of a node, and the number of each."""

    answers: tuple[IdentityAnswer, ...]
    numbers: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of a node that decide which cards fit: those of the node itself, and for each card the number
    of its facts. `cards` is None if no fact of a card decides.
    """

    node: Hashable
    cards: NDArray[np.int64] | None


class Numbers(Generic[K, V]):
    """The numbers of values, from 0, and an object for each."""

    def __init__(self) -> None:
        self.objects: list[V] = []
        self._numbers: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def of(self, value: K, make: Callable[[], V]) -> int:
        """Return the number of a value; a new value gets the next one."""
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self.objects)
            self.objects.append(make())
        return number

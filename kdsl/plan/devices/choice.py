"""What a chooser gets and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kdsl.cluster.devices.cards import Card
from kdsl.eval.values import Value


@dataclass(frozen=True, slots=True)
class Candidate:
    """A card that fits and what it would give. `place` is its number among all cards that were tried."""

    card: Card
    place: int
    memory: int
    cores: int
    slots: int
    type: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """No choice does: `count` of `total` cards for the chooser's reason.

    `total` is the number of cards that were tried where it is None. `counts` is what is said instead of all
    that was counted, by reason; an empty reason stands for the chooser's.
    """

    count: int = 0
    total: int | None = None
    counts: Mapping[str, int] | None = None


Read = Callable[..., Value]
"""`read("field", card, other)`: the value of a chooser's field, for one card, for two, or for none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a chooser chooses from: `fitting` are in the order of trying, `cards` are all that were tried.

    `candidate` gives what a card would be charged by its place, also of one that does not fit.
    """

    count: int
    fitting: Sequence[Candidate]
    cards: Sequence[Card]
    read: Read
    rejected: Mapping[str, int]
    candidate: Callable[[int], Candidate]


Chosen = Sequence[Candidate]
Chooser = Callable[[Choice], Chosen | Refusal]


def too_few(choice: Choice) -> Refusal | None:
    """Refuse where fewer cards fit than are asked for."""
    return Refusal(len(choice.fitting)) if len(choice.fitting) < choice.count else None

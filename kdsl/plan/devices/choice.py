"""The choice that a chooser makes, and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kdsl.cluster.devices.cards import Card, Grant
from kdsl.eval.values import Value


@dataclass(frozen=True, slots=True)
class Charge:
    """The part of a card that a container would get. Fields are those of the `DeviceCharge` view.

    `type` is recorded.
    """

    memory: int
    cores: int
    slots: int
    type: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A card and its charge. `place` is its number in the order of trying."""

    card: Card
    place: int
    charge: Charge

    def grant(self) -> Grant:
        """Return the part of the card that the container gets."""
        card, charge = self.card, self.charge
        return Grant(
            card.id, charge.type, charge.memory, charge.cores, charge.slots, card.index, card.attributes
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """No choice: `count` of `total` cards (None: of all) for the chooser's reason.

    `counts` replaces all counts by reason; an empty reason stands for the chooser's.
    """

    count: int = 0
    total: int | None = None
    counts: Mapping[str, int] | None = None


Read = Callable[..., Value]
"""`read("field", card, other)`: the value of a chooser's field for a card, a pair of cards, or none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cards that fit and all `cards`, both in the order of trying. `rejected` counts cards by reason."""

    count: int
    fitting: Sequence[Candidate]
    cards: Sequence[Card]
    read: Read
    rejected: Mapping[str, int]
    charges: Sequence[Charge]


Chosen = Sequence[Candidate]
Chooser = Callable[[Choice], Chosen | Refusal]


def too_few(choice: Choice) -> Refusal | None:
    """Refuse if fewer cards fit than are requested."""
    return Refusal(len(choice.fitting)) if len(choice.fitting) < choice.count else None

"""The choice that a chooser makes, and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.eval.values import Value


@dataclass(frozen=True, slots=True)
class CardCharge:
    """The part of a card that a container would get. Fields are those of the `DeviceCharge` view.

    `type` is recorded.
    """

    memory: int
    cores: int
    slots: int
    type: str


@dataclass(frozen=True, slots=True)
class CardCandidate:
    """A card and its charge. `place` is its number in the order of trying."""

    card: Card
    place: int
    charge: CardCharge

    def grant(self) -> DeviceGrant:
        """Return the part of the card that the container gets."""
        card, charge = self.card, self.charge
        return DeviceGrant(
            card.id, charge.type, charge.memory, charge.cores, charge.slots, card.index, card.attributes
        )


@dataclass(frozen=True, slots=True)
class Earlier:
    """Cards that were given back, since the next card is not to be together with them; the reason for it."""

    reason: str
    cards: tuple[CardCandidate, ...]


@dataclass(frozen=True, slots=True)
class CardRefusal:
    """The refusal to choose: `count` of `total` cards (None: of all) for the chooser's reason.

    `counts` replaces all counts by reason; an empty reason stands for the chooser's.
    """

    count: int = 0
    total: int | None = None
    counts: Mapping[str, int] | None = None


Read = Callable[..., Value]
"""`read("field", card, other)`: the value of a chooser's field for a card, a pair of cards, or none."""


@dataclass(frozen=True, slots=True)
class CardChoice:
    """The cards that fit and all `cards`, both in the order of trying. `rejected` counts cards by reason.

    `earlier` are the cards given back; a chooser that does not read them has them among `rejected`.
    """

    count: int
    fitting: Sequence[CardCandidate]
    cards: Sequence[Card]
    read: Read
    rejected: Mapping[str, int]
    charges: Sequence[CardCharge]
    earlier: Sequence[Earlier] = ()


Chosen = Sequence[CardCandidate]
Chooser = Callable[[CardChoice], Chosen | CardRefusal]


def too_few(choice: CardChoice) -> CardRefusal | None:
    """Refuse if fewer cards fit than are requested."""
    return CardRefusal(len(choice.fitting)) if len(choice.fitting) < choice.count else None

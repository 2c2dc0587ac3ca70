"""Choices for the tests of choosers: cards by name, in the order of trying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kdsl.cluster.devices.cards import Card
from kdsl.plan.devices.choice import Candidate, Choice, Chooser, Refusal


def choose(
    chooser: Chooser,
    count: int,
    cards: str,
    unfit: str = "",
    rejected: Mapping[str, int] | None = None,
    **fields: Any,
) -> str | Refusal:
    """Return the names of the chosen cards.

    `cards` and `unfit` are names of one letter; the index of a card is that of its letter. The value of a field
    is a map from names, or the same for all cards.
    """
    all_cards = [Card(name, "K", "K", 4, 100, 100, index=ord(name) - ord("a")) for name in cards]

    def read(name: str, device: Card | None = None, other: Card | None = None) -> Any:
        value = fields.get(name)
        return value[device.id] if isinstance(value, Mapping) and device is not None else value

    def charged(place: int) -> Candidate:
        return Candidate(all_cards[place], place, 0, 0, 1, "K")

    fitting: Sequence[Candidate] = [
        each for each in (charged(place) for place in range(len(all_cards))) if each.card.id not in unfit
    ]
    chosen = chooser(Choice(count, fitting, all_cards, read, rejected or {}, charged))
    return chosen if isinstance(chosen, Refusal) else "".join(one.card.id for one in chosen)

"""The cards that the containers of a pod leave to those after them, on many nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.plan.columns.column import Array, Mask
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.choice import CardCharge

Ints = NDArray[np.intp]
Part = tuple[Ints, DistinctObjects[Card]]
"""Places of different cards, and the objects that have the numbers of these cards."""


@dataclass(frozen=True, slots=True)
class CardsLeft:
    """The cards of some nodes: card `i` is on node `nodes[i]`, and is `different[places[i]]`.

    The cards of a node are in the order in which they were tried last, at first from the last to the first.
    `sizes` has their number by node. The first `known` different cards have the numbers of the cluster's
    cards, those that containers of the pod share have the numbers of `shared`.
    """

    sizes: NDArray[np.int64]
    nodes: Ints
    places: Ints
    different: Sequence[AskedCard]
    known: int
    shared: DistinctObjects[Card]

    @staticmethod
    def of(sizes: NDArray[np.int64], different: Sequence[AskedCard], places: Ints) -> CardsLeft:
        """Return the cards before the first container; `places` has those of each node in its own order."""
        nodes = np.repeat(np.arange(len(sizes)), sizes)
        return CardsLeft(sizes, nodes[::-1], places[::-1], different, len(different), DistinctObjects())

    def present(self, known: DistinctObjects[Card]) -> list[Part]:
        """Return the different cards that some node has; `known` has the numbers of the cluster's cards."""
        places = np.unique(self.places)
        of_known = int(np.searchsorted(places, self.known))
        parts = (places[:of_known], known), (places[of_known:], self.shared)
        return [(part, objects) for part, objects in parts if len(part)]

    def part(self, nodes: Ints) -> CardsLeft:
        """Return the cards of some of the nodes, which get the numbers from 0."""
        numbers = np.full(len(self.sizes), -1)
        numbers[nodes] = np.arange(len(nodes))
        kept = numbers[self.nodes] >= 0
        return replace(
            self, sizes=self.sizes[nodes], nodes=numbers[self.nodes[kept]], places=self.places[kept]
        )

    def ordered(self, order: Iterable[Array]) -> CardsLeft:
        """Return the cards of each node by numbers of the different cards, of which the first array decides
        first; equal ones stay as they are.
        """
        keys = [self.nodes, *[numbers[self.places] for numbers in order]]
        at = np.lexsort(keys[::-1])
        return replace(self, nodes=self.nodes[at], places=self.places[at])

    def first(self, fitting: Mask, count: int) -> Mask:
        """Return the first so many cards of each node that fit. `fitting` says which different cards do.

        The cards must be `ordered`.
        """
        fits = fitting[self.places]
        numbers = np.concatenate(([0], fits.cumsum()))
        before = numbers[self.sizes.cumsum() - self.sizes]
        found: Mask = fits & (numbers[1:] - before[self.nodes] <= count)
        return found

    def after(
        self, chosen: Mask, charge: Callable[[Card], CardCharge], key: Callable[[Card], Hashable]
    ) -> CardsLeft:
        """Return the cards after a container has got the chosen ones. Cards with equal keys are equal to
        rules.
        """
        places, more = np.unique(self.places[chosen], return_inverse=True)
        asked = [self.different[place] for place in places.tolist()]
        cards = [_charged(each.card, charge(each.card)) for each in asked]
        numbers = self.shared.number(map(key, cards), cards).tolist()
        shared = [
            AskedCard(card, each.answer, number)
            for card, each, number in zip(cards, asked, numbers, strict=True)
        ]
        places = self.places.copy()
        places[chosen] = more + len(self.different)
        return replace(self, places=places, different=[*self.different, *shared])


def _charged(card: Card, charge: CardCharge) -> Card:
    return card.with_usage(charge.slots, charge.memory, charge.cores)

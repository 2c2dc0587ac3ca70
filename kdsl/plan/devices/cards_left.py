"""The cards that the containers of a pod leave to those after them, on many nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.plan.columns.column import Array, Coded, Column, Mask, Objects
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.choice import CardCharge

Ints = NDArray[np.intp]
_NONE: Final = np.zeros(0, np.intp)


class _WithShared(DistinctObjects[Card]):
    """The cards that are known so far, and behind them those that a container shares.

    INVARIANT: while there is one, no more cards become known.
    """

    def __init__(self, known: DistinctObjects[Card], shared: Sequence[Card]) -> None:
        super().__init__()
        self._known = known
        self.objects = [*known.objects, *shared]

    def _column(self, attribute: str) -> Column | Coded | None:
        known = self._known.variable(_NONE).read(attribute)
        if isinstance(known, Column | Coded):
            self._columns.setdefault(attribute, (len(self._known), known))
        return super()._column(attribute)


@dataclass(frozen=True, slots=True)
class CardsLeft:
    """The cards of some nodes: card `i` is on node `nodes[i]`, and is `different[places[i]]`.

    The cards of a node are in the order in which they were tried last, at first from the last to the first.
    `sizes` has their number by node. `objects` number the different cards.
    """

    sizes: NDArray[np.int64]
    nodes: Ints
    places: Ints
    different: Sequence[AskedCard]
    objects: DistinctObjects[Card]

    @staticmethod
    def of(
        sizes: NDArray[np.int64], different: Sequence[AskedCard], places: Ints, known: DistinctObjects[Card]
    ) -> CardsLeft:
        """Return the cards before the first container; `places` has those of each node in its own order."""
        nodes = np.repeat(np.arange(len(sizes)), sizes)
        return CardsLeft(sizes, nodes[::-1], places[::-1], different, known)

    def variable(self) -> Objects:
        """Return a variable that goes through the different cards."""
        return self.objects.variable(np.array([each.number for each in self.different], np.intp))

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
        taken, more = np.unique(self.places[chosen], return_inverse=True)
        asked = [self.different[place] for place in taken.tolist()]
        cards, shared = [_charged(each.card, charge(each.card)) for each in asked], DistinctObjects[Card]()
        numbers = (shared.number(map(key, cards), cards) + len(self.objects)).tolist()
        different = [*self.different, *map(AskedCard, cards, [each.answer for each in asked], numbers)]
        places = self.places.copy()
        places[chosen] = more + len(self.different)
        left, places = np.unique(places, return_inverse=True)
        different = [different[place] for place in left.tolist()]
        return replace(
            self, places=places, different=different, objects=_WithShared(self.objects, shared.objects)
        )


def _charged(card: Card, charge: CardCharge) -> Card:
    return card.with_usage(charge.slots, charge.memory, charge.cores)

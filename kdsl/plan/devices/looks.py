"""Which nodes look alike to devices: cards of equal numbers, and equal answers to what is asked of names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.naming import OwnAnswer, OwnAnswers
from kdsl.plan.devices.placing import NodeCards, is_of
from kdsl.plan.devices.stock import Stock
from kdsl.plan.memo.answers import ByRow, Kinds

ALONE: Final = 0
"""The number of what looks like nothing else."""
SPARE_LOOKS: Final = 16_384
"""So many looks are remembered beside twice as many as there are rows; then all are forgotten. One takes
about 200 bytes for each card.
"""
_INT32: Final = np.dtype(np.int32)

LookKey = tuple[int, int]
"""The numbers of the cards of a node and of what own tests say of them."""
Answered = tuple[tuple[OwnAnswer, ...], ...]
"""What own tests of the kinds that a demand has say of the cards of a node, in order."""


class _Numbers:
    """Numbers for things, from 1."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, thing: Hashable) -> int:
        return self._numbers.setdefault(thing, len(self._numbers) + 1)


class NodeLooks:
    """The looks of the rows of a live snapshot. `generation` rises when all numbers lose their meaning."""

    def __init__(self, stock: Stock) -> None:
        self.generation = 0
        self._stock = stock
        self._live: LiveSnapshot | None = None
        self._cards, self._answers = _Numbers(), _Numbers()
        self._answered: list[Answered] = []
        self._rows: ByRow | None = None
        self._own: Kinds[ByRow] = Kinds()

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in what changed since the last time."""
        full = SPARE_LOOKS + 2 * len(live.names)
        if self._rows is None or live is not self._live or max(len(self._cards), len(self._answers)) > full:
            self.generation += 1
            self._live, self._cards, self._answers, self._answered = live, _Numbers(), _Numbers(), []
            self._rows = ByRow(live, _INT32, live.fact_changes, live.usage_changes)
            self._own.clear()
        self._rows.refresh()

    def own(self, demand: Demand) -> ByRow | None:
        """Return where to keep what is asked of names for a demand; None where that does not tell all."""
        assert self._live is not None
        live, kinds = self._live, demand.kinds
        if not all(self._stock.programs[kind].fitting.is_shared for kind in kinds):
            return None
        own = self._own.get(
            (demand.traits, kinds), lambda known: True, lambda: ByRow(live, _INT32, live.fact_changes)
        )
        own.refresh()
        return own

    def keys(self, demand: Demand, own: ByRow, rows: Rows) -> list[LookKey | None]:
        """Return what the nodes of some rows have in common with all of the same key; None for nothing."""
        assert self._rows is not None and self._live is not None
        live = self._live

        def look(missing: Rows) -> NDArray[Any]:
            return np.array([self._look(live.info(row)) for row in missing.tolist()], np.int32)

        def answers(missing: Rows) -> NDArray[Any]:
            return np.array([self._own_answers(demand, live.info(row)) for row in missing.tolist()], np.int32)

        looks, owns = self._rows.get(rows, look)[0].tolist(), own.get(rows, answers)[0].tolist()
        return [key if ALONE not in key else None for key in zip(looks, owns, strict=True)]

    def own_answers(self, demand: Demand, at: NodeCards, number: int) -> Mapping[str, OwnAnswers]:
        """Return what own tests say of the cards of a node by kind, by the number of what they say."""
        found: dict[str, OwnAnswers] = {}
        for kind, answered in zip(demand.kinds, self._answered[number - 1], strict=True):
            cards = [card.id for card in at.cards if is_of(card.type, kind)]
            found[kind] = dict(zip(cards, answered, strict=False))
        return found

    def _look(self, node: NodeInfo) -> int:
        inventory = self._stock.inventory(node.facts)
        faults = tuple(inventory.faults.items())
        return self._cards.of((faults, tuple([card.shape for card in self._stock.cards(node)])))

    def _own_answers(self, demand: Demand, node: NodeInfo) -> int:
        at, found = self._stock.idle(node), []
        for kind in demand.kinds:
            tests = self._stock.programs[kind].fitting.cards.own
            cards = [card for card in at.cards if is_of(card.type, kind)]
            answers = tests.answers(demand.pod, at.node, demand.policy, cards)
            if any(isinstance(each, str) for answer in answers.values() for each in answer):
                return ALONE
            found.append(tuple(answers.values()))
        number = self._answers.of(answered := tuple(found))
        if number > len(self._answered):
            self._answered.append(answered)
        return number

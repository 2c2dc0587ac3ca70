"""Which nodes look alike to devices: cards of equal numbers, and equal answers to what is asked of names."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.node import NodeInfo
from kdsl.cluster.snapshot import LiveSnapshot, Rows
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.stock import Stock, device_node
from kdsl.plan.standing.answers import ByRow, Kinds

ALONE: Final = 0
"""The number of what looks like nothing else."""
SPARE_LOOKS: Final = 16_384
"""So many looks are remembered beside twice as many as there are rows; then all are forgotten. One takes
about 200 bytes for each card.
"""
_INT32: Final = np.dtype(np.int32)


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
        self._rows: ByRow | None = None
        self._own: Kinds[ByRow] = Kinds()

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in what changed since the last time."""
        full = SPARE_LOOKS + 2 * len(live.names)
        if self._rows is None or live is not self._live or max(len(self._cards), len(self._answers)) > full:
            self.generation += 1
            self._live, self._cards, self._answers = live, _Numbers(), _Numbers()
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

    def keys(self, demand: Demand, own: ByRow, rows: Rows) -> list[tuple[int, int] | None]:
        """Return what the nodes of some rows have in common with all of the same key; None for nothing."""
        assert self._rows is not None and self._live is not None
        live = self._live

        def look(missing: Rows) -> NDArray[Any]:
            return np.array([self._look(live.info(row)) for row in missing.tolist()], np.int32)

        def answers(missing: Rows) -> NDArray[Any]:
            return np.array([self._own_answers(demand, live.info(row)) for row in missing.tolist()], np.int32)

        looks, owns = self._rows.get(rows, look)[0].tolist(), own.get(rows, answers)[0].tolist()
        return [key if ALONE not in key else None for key in zip(looks, owns, strict=True)]

    def _look(self, node: NodeInfo) -> int:
        inventory = self._stock.inventory(node.facts)
        if len({card.id for card in inventory.cards}) < len(inventory.cards):
            return ALONE
        faults = tuple(inventory.faults.items())
        return self._cards.of((faults, tuple(map(_shape, self._stock.cards(node)))))

    def _own_answers(self, demand: Demand, node: NodeInfo) -> int:
        at, found = device_node(node.facts), []
        for kind in demand.kinds:
            word = kind.lower()
            cards = [card for card in self._stock.inventory(node.facts).cards if word in card.type.lower()]
            answers = self._stock.programs[kind].fitting.own_answers(demand.pod, at, demand.policy, cards)
            if answers is None:
                return ALONE
            found.append(answers)
        return self._answers.of(tuple(found))


def _shape(card: Card) -> tuple[Hashable, ...]:
    """Return all of a card but its name, its attributes and who its tenants are."""
    return (
        card.kind,
        card.type,
        card.slots,
        card.memory,
        card.cores,
        card.index,
        card.numa,
        card.mode,
        card.healthy,
        card.used,
        card.used_memory,
        card.used_cores,
        len(card.tenants),
    )

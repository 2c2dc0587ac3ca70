"""Node classes of devices: nodes whose cards have equal shapes and equal answers of identity tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.changed_rows import Changes
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.plan.devices.identity import IdentityAnswer, IdentityAnswers
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.node_inputs import NodeChanges
from kdsl.plan.devices.placing import NodeCards, is_of
from kdsl.plan.devices.requests import Demand
from kdsl.plan.memo.answers import ByRow
from kdsl.plan.memo.bounded_memo import Memo

NO_CLASS: Final = 0
"""The number of a node without a class."""
SPARE_CLASSES: Final = 16_384
"""The memo holds so many classes and twice as many as there are rows. A class takes about 200 bytes per card.
"""
INT32: Final = np.dtype(np.int32)

ClassKey = tuple[int, int]
"""The number of the shapes of a node's cards, and of the answers of identity tests about them."""


def _numbers() -> defaultdict[Hashable, int]:
    """Return the numbers of values, from 1; a new value gets the next one at look-up."""
    return defaultdict(count(1).__next__)


class InventoryClasses:
    """The classes of the rows of a live snapshot. `generation` rises when all numbers become void."""

    def __init__(self, inventories: Inventories) -> None:
        self.generation = 0
        self._inventories = inventories
        self._live: LiveSnapshot | None = None
        self._shapes, self._answers = _numbers(), _numbers()
        self._answers_of: list[tuple[tuple[IdentityAnswer, ...], ...]] = []
        self._changes: NodeChanges | None = None
        self._by_shapes: ByRow | None = None
        self._by_answers: Memo[ByRow] = Memo()

    def refresh(self, live: LiveSnapshot) -> None:
        """Take in the changes since the last time."""
        full = SPARE_CLASSES + 2 * len(live.names)
        is_full = max(len(self._shapes), len(self._answers)) > full
        changes = self._changes
        if changes is None or live is not self._live or is_full or not changes.refresh():
            self.generation += 1
            self._live, self._shapes, self._answers, self._answers_of = live, _numbers(), _numbers(), []
            changes = self._changes = NodeChanges(live, self._inventories.inputs)
            self._by_shapes = ByRow(live, INT32, changes.log, live.usage_changes)
            self._by_answers.clear()
        assert self._by_shapes is not None
        self._by_shapes.refresh()

    @property
    def changes(self) -> Changes:
        """The log of the rows whose nodes changed for device rules, of this generation."""
        assert self._changes is not None
        return self._changes.log

    def keys(self, demand: Demand, rows: Rows) -> list[ClassKey | None]:
        """Return the classes of the nodes of some rows; None for a node without a class."""
        assert self._by_shapes is not None and self._live is not None
        live = self._live
        if not all(self._inventories.programs[kind].fitting.is_shared for kind in demand.kinds):
            return [None] * len(rows)
        by_answers = self._by_answers.get(
            (demand.pod_signature, demand.kinds),
            lambda known: True,
            lambda: ByRow(live, INT32, self.changes),
        )
        by_answers.refresh()

        def shapes(missing: Rows) -> NDArray[Any]:
            return np.array([self._shapes_number(live.info(row)) for row in missing.tolist()], np.int32)

        def answers(missing: Rows) -> NDArray[Any]:
            numbers = [self._answers_number(demand, live.info(row)) for row in missing.tolist()]
            return np.array(numbers, np.int32)

        numbers = zip(
            self._by_shapes.get(rows, shapes)[0].tolist(),
            by_answers.get(rows, answers)[0].tolist(),
            strict=True,
        )
        return [key if NO_CLASS not in key else None for key in numbers]

    def answers(self, demand: Demand, at: NodeCards, key: ClassKey) -> Mapping[str, IdentityAnswers]:
        """Return the answers of identity tests about the cards of a node of a class, by kind."""
        return {
            kind: dict(zip((card.id for card in at.cards if is_of(card.type, kind)), answers, strict=False))
            for kind, answers in zip(demand.kinds, self._answers_of[key[1] - 1], strict=True)
        }

    def _shapes_number(self, node: NodeInfo) -> int:
        faults = tuple(self._inventories.inventory(node.facts).faults.items())
        return self._shapes[faults, tuple([card.shape for card in self._inventories.cards(node)])]

    def _answers_number(self, demand: Demand, node: NodeInfo) -> int:
        at, found = self._inventories.idle(node), []
        for kind in demand.kinds:
            tests = self._inventories.programs[kind].fitting.cards.identity
            cards = [card for card in at.cards if is_of(card.type, kind)]
            answers = tests.answers(demand.pod, at.node, demand.policy, cards).values()
            if any(isinstance(each, str) for answer in answers for each in answer):
                return NO_CLASS
            found.append(tuple(answers))
        number = self._answers[tuple(found)]
        if number > len(self._answers_of):
            self._answers_of.append(tuple(found))
        return number

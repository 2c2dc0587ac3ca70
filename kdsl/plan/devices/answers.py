"""The nodes that have cards for a pod, kept by signature of pods and class of nodes.

Only changed nodes are asked again, and one node of each class. The cards of a pod are chosen for its node
alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.bounded_memo import Memo
from kdsl.cluster.devices.cards import Card, Shape
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.eval.values import EvalError
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.devices.alike import INT32
from kdsl.plan.devices.card_memo import CardMemo
from kdsl.plan.devices.classes import ClassKey, InventoryClasses
from kdsl.plan.devices.counting import CardCounts
from kdsl.plan.devices.device_error import fault_of, rejection
from kdsl.plan.devices.identity import IdentityAnswers
from kdsl.plan.devices.inventories import Inventories, NodeInventory, device_node
from kdsl.plan.devices.placing import NodeCards, Placed, Unplaced, place
from kdsl.plan.devices.requests import Demand
from kdsl.plan.memo.answers import ByRow

UNREGISTERED: Final = "node unregistered"
"""HAMi's reason for a node without cards."""
SPARE_ANSWERS: Final = 4_096
"""The memo of a signature holds so many answers and twice as many as there are rows."""
MAX_SHAPES: Final = 32_768
"""The memo of cards of a signature holds so many shapes; then it is emptied."""
_ANSWER_BYTES: Final = 200
"""About the size of an answer for a class."""
WhatIfCards = Sequence[tuple[Card, ...]] | None
"""The cards of each node of a what-if; None for nodes as they are."""
_IdleKey = tuple[tuple[Shape, ...], Hashable]
"""The shapes of idle cards, and `InventoryClasses.idle`."""


@dataclass(slots=True)
class _Memo:
    """The answers for demands of one signature: the number of an outcome by row and by node class.

    An outcome is the score of a node with cards, numbered from 0 up, or the status of a node without,
    numbered from -1 down. `idle` says whether nodes would have cards if they had no pods.
    """

    generation: int
    rows: ByRow
    shared: dict[ClassKey, int] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    idle: dict[_IdleKey, bool] = field(default_factory=dict)
    _scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(16))
    _numbers: dict[float | Status, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of answers, of the sort of which there are most."""
        return max(len(self.shared), len(self._numbers), len(self.idle))

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES * (len(self.shared) + len(self._numbers) + len(self.idle))

    def number(self, outcome: np.float32 | Status) -> int:
        """Return the number of an outcome: the score of a node or the status against it."""
        key = outcome if isinstance(outcome, Status) else float(outcome)
        known = self._numbers.get(key)
        if known is not None:
            return known
        if isinstance(key, Status):
            number = -len(self.statuses)
            self.statuses.append(key)
        else:
            number = len(self._numbers) - len(self.statuses) + 1
            if number == len(self._scores):
                self._scores = np.resize(self._scores, 2 * number)
            self._scores[number] = key
        self._numbers[key] = number
        return number

    def scores(self, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the scores of outcomes; 0 for statuses."""
        return np.where(numbers < 0, 0.0, self._scores.take(np.maximum(numbers, 0)))


@dataclass(frozen=True, slots=True)
class _Known:
    """The memo of a node class: the answers of identity tests by kind, and `_Memo.idle`."""

    key: ClassKey
    identity: Mapping[str, IdentityAnswers]
    idle: dict[_IdleKey, bool]


class CardAnswers:
    """Asks nodes for cards, and keeps the answers of the live snapshot."""

    def __init__(self, inventories: Inventories) -> None:
        self._inventories = inventories
        self._classes = InventoryClasses(inventories)
        self._memos: Memo[_Memo] = Memo()
        self._cards: Memo[CardMemo] = Memo()
        self._lock = Lock()

    def column(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, cards: WhatIfCards = None
    ) -> StatusColumn:
        """Return the status of each node of some rows; the nodes of a what-if have these `cards`."""
        memo, numbers = self._numbers(demand, snapshot, rows, cards)
        return StatusColumn(np.maximum(-numbers, 0), memo.statuses.copy())

    def scores(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, cards: WhatIfCards = None
    ) -> NDArray[np.float64]:
        """Return the score of each node of some rows, 0 for a node without cards; `cards` as in `column`."""
        memo, numbers = self._numbers(demand, snapshot, rows, cards)
        return memo.scores(numbers)

    def ask(self, demand: Demand, node: NodeInfo, cards: tuple[Card, ...] | None = None) -> Placed | Status:
        """Ask one node, which may be a what-if, perhaps with other `cards` than its own.

        A rejection is curable if the node would have cards with no pods on it.
        """
        return self._ask(demand, node, cards)

    def grant(
        self, demand: Demand, snapshot: Snapshot, node: NodeInfo, cards: tuple[Card, ...] | None = None
    ) -> Placed | Status:
        """Return the cards of a pod on a node, perhaps with other `cards`, or the reason why it gets none."""
        row = snapshot.row_of(node.name)
        with self._lock:
            self._classes.refresh(snapshot.live)
            key = None if row is None else self._classes.keys(demand, np.array([row], np.intp))[0]
            if key is not None and row is not None and snapshot.live.info(row).facts is not node.facts:
                key = None
            return self._ask(demand, node, cards, self._known(demand, node, key, {}))

    def _known(
        self, demand: Demand, node: NodeInfo, key: ClassKey | None, idle: dict[_IdleKey, bool]
    ) -> _Known | None:
        if key is None:
            return None
        return _Known(key, self._classes.answers(demand, self._inventories.idle(node), key), idle)

    def _ask(
        self,
        demand: Demand,
        node: NodeInfo,
        cards: tuple[Card, ...] | None = None,
        known: _Known | None = None,
    ) -> Placed | Status:
        """Return the answer of a node, which is that of its class if it is `known`."""
        refusal = self._unregistered(demand, node)
        if refusal is not None:
            return refusal
        at = (
            self._inventories.at(node)
            if cards is None
            else NodeCards(device_node(node.facts, node.requested), cards)
        )
        found = self._place(demand, at, demand.quota or NO_QUOTA, known)
        if isinstance(found, Placed):
            return found
        return self._refused(demand, node, at, found, known)

    def _unregistered(self, demand: Demand, node: NodeInfo) -> Status | None:
        """Return the reason why a node has no cards to try, None if it has some."""
        inventory = self._inventories.inventory(node.facts)
        for kind in demand.kinds:
            if kind in inventory.faults:
                return rejection(Code.UNRESOLVABLE, inventory.faults[kind])
        return None if inventory.cards else Status(Code.UNRESOLVABLE, (UNREGISTERED,))

    def _refused(
        self, demand: Demand, node: NodeInfo, at: NodeCards, found: Unplaced, known: _Known | None
    ) -> Status:
        """Return the status of a node whose cards do not fit; it is curable if they would without pods."""
        code = Code.UNRESOLVABLE
        is_used = any(card.tenants for card in at.cards) or (demand.quota and demand.quota.used)
        if is_used and self._fits_idle(demand, self._inventories.inventory(node.facts), known):
            code = Code.UNSCHEDULABLE
        if found.fault is not None:
            return rejection(code, found.fault)
        return Status(code, (found.reason,))

    def _fits_idle(self, demand: Demand, inventory: NodeInventory, known: _Known | None) -> bool:
        """Return whether a node would have cards with no pods on it."""
        if known is None:
            return self._is_placed_idle(demand, inventory, known)
        key = inventory.shapes, self._classes.idle(known.key, inventory.at)
        if key not in known.idle:
            known.idle[key] = self._is_placed_idle(demand, inventory, known)
        return known.idle[key]

    def _is_placed_idle(self, demand: Demand, inventory: NodeInventory, known: _Known | None) -> bool:
        limits = Quota(demand.quota.limits) if demand.quota else NO_QUOTA
        return isinstance(self._place(demand, inventory.at, limits, known), Placed)

    def _place(self, demand: Demand, at: NodeCards, quota: Quota, known: _Known | None) -> Placed | Unplaced:
        try:
            return place(
                self._inventories.programs,
                demand.pod,
                demand.requests,
                demand.policy,
                at,
                quota,
                memo=self._memo(demand),
                identity=known.identity if known else None,
            )
        except EvalError as error:
            return Unplaced(error.message, fault_of(error))

    def _memo(self, demand: Demand) -> CardMemo:
        return self._cards.get(demand.pod_signature, lambda known: len(known) < MAX_SHAPES, CardMemo)

    def _numbers(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, cards: WhatIfCards
    ) -> tuple[_Memo, NDArray[np.int32]]:
        """Return the numbers of the outcomes of some rows."""
        live = snapshot.live
        with self._lock:
            classes = self._classes
            classes.refresh(live)
            most = SPARE_ANSWERS + 2 * len(live.names)
            memo = self._memos.get(
                demand.signature,
                lambda memo: memo.generation == classes.generation and memo.size < most,
                lambda: _Memo(classes.generation, ByRow(live, INT32, classes.changes, live.usage_changes)),
            )
            if cards is not None:
                return memo, self._what_ifs(demand, memo, snapshot, rows, cards)
            memo.rows.refresh()

            def compute(missing: Rows) -> NDArray[Any]:
                return self._outcomes(demand, memo, live, missing)

            return memo, memo.rows.get(rows, compute)[0]

    def _what_ifs(
        self,
        demand: Demand,
        memo: _Memo,
        snapshot: Snapshot,
        rows: Rows,
        cards: Sequence[tuple[Card, ...]],
    ) -> NDArray[np.int32]:
        """Return the numbers of the outcomes of some rows with other cards: those of their classes."""
        numbers, live = [], snapshot.live
        for row, key, own in zip(rows.tolist(), self._classes.keys(demand, rows), cards, strict=True):
            node = snapshot.info(row)
            if key is not None:
                is_known = live.info(row).facts is node.facts
                key = self._classes.what_if(demand, key, node, own, self._memo(demand)) if is_known else None
            number = None if key is None else memo.shared.get(key)
            numbers.append(self._asked(demand, memo, node, key, own) if number is None else number)
        return np.array(numbers, np.int32)

    def _asked(
        self,
        demand: Demand,
        memo: _Memo,
        node: NodeInfo,
        key: ClassKey | None,
        cards: tuple[Card, ...] | None = None,
    ) -> int:
        """Ask a node of a class, and return the number of the outcome."""
        known = self._known(demand, node, key, memo.idle)
        outcome = self._ask(demand, node, cards, known)
        number = memo.number(outcome if isinstance(outcome, Status) else outcome.score)
        if key is not None:
            memo.shared[key] = number
        return number

    def _outcomes(self, demand: Demand, memo: _Memo, live: LiveSnapshot, rows: Rows) -> NDArray[np.int32]:
        """Return the numbers of the outcomes of some rows; the first node of a class is asked for all."""
        nodes, keys = rows.tolist(), self._classes.keys(demand, rows)
        keys = list(self._classes.refined(demand, keys, rows, self._memo(demand)))
        firsts = dict(zip(reversed(keys), reversed(nodes), strict=True))
        new = [key for key in firsts if key is not None and key not in memo.shared]
        if new:
            self._count(demand, memo, {key: live.info(firsts[key]) for key in new})
        known = {key: key and memo.shared.get(key) for key in firsts}
        # One look-up for each row: `map` makes no call of it.
        numbers = list(map(known.get, keys))
        if None in numbers:
            for at, (row, key) in enumerate(zip(nodes, keys, strict=True)):
                if numbers[at] is None:
                    number = memo.shared.get(key) if key else None
                    numbers[at] = self._asked(demand, memo, live.info(row), key) if number is None else number
        return np.array(numbers, np.int32)

    def _count(self, demand: Demand, memo: _Memo, firsts: Mapping[ClassKey, NodeInfo]) -> None:
        """Keep the answers of classes that need no choice of cards; `firsts` has a node of each class."""
        asked = defaultdict[Hashable, dict[ClassKey, NodeInfo]](dict)
        for key, node in firsts.items():
            status = self._unregistered(demand, node)
            if status is None:
                asked[self._classes.facts(key).node][key] = node
            else:
                memo.shared[key] = memo.number(status)
        for facts, nodes in asked.items():
            of = self._inventories.at(next(iter(nodes.values()))).node
            counts = CardCounts.of(self._inventories.programs, demand, self._memo(demand), of, facts)
            if counts is None:
                return
            reasons = counts.reasons(self._classes, tuple(nodes), tuple(nodes.values()))
            for (key, node), reason in zip(nodes.items(), reasons, strict=True):
                if reason == "":
                    memo.shared[key] = memo.number(self._classes.shapes(key).fullness)
                elif reason is not None:
                    at, known = self._inventories.at(node), self._known(demand, node, key, memo.idle)
                    refused = self._refused(demand, node, at, Unplaced(reason), known)
                    memo.shared[key] = memo.number(refused)

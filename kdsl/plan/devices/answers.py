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
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.eval.values import EvalError
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.devices.alike import INT32
from kdsl.plan.devices.attempt import NodeCards, Unplaced
from kdsl.plan.devices.classes import ClassKey, InventoryClasses
from kdsl.plan.devices.counting import CardCounts
from kdsl.plan.devices.demand import CardMemo, Demand
from kdsl.plan.devices.device_error import fault_of, rejection
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.memo.answers import ByRow

UNREGISTERED: Final = "node unregistered"
"""HAMi's reason for a node without cards."""
SPARE_ANSWERS: Final = 4_096
"""The memo of a signature holds so many answers and twice as many as there are rows."""
MAX_SHAPES: Final = 32_768
"""The memo of cards of a signature holds so many shapes; then it is emptied."""
_ANSWER_BYTES: Final = 200
"""About the size of an answer for a class."""
WhatIfs = Sequence[NodeCards] | None
"""The nodes of a what-if; None for nodes as they are."""


@dataclass(slots=True)
class _Memo:
    """The answers for demands of one signature: the number of an outcome by row and by node class.

    An outcome is the score of a node with cards, numbered from 0 up, or the status of a node without,
    numbered from -1 down.
    """

    generation: int
    rows: ByRow
    shared: dict[ClassKey | None, int] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    _scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(16))
    _numbers: dict[float | Status, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of answers, of the sort of which there are most."""
        return max(len(self.shared), len(self._numbers))

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES * (len(self.shared) + len(self._numbers))

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


class CardAnswers:
    """The answers of nodes that are asked for cards; those of the live snapshot are kept."""

    def __init__(self, inventories: Inventories) -> None:
        self._inventories = inventories
        self._classes = InventoryClasses(inventories)
        self._memos: Memo[_Memo] = Memo()
        self._cards: Memo[CardMemo] = Memo()
        self._lock = Lock()

    def memo(self, pod_signature: Hashable) -> CardMemo:
        """Return the memo of demands with equal fields of pods."""
        return self._cards.get(pod_signature, lambda known: len(known) < MAX_SHAPES, CardMemo)

    def column(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, what_ifs: WhatIfs = None
    ) -> StatusColumn:
        """Return the status of each node of some rows, which may be `what_ifs`."""
        memo, numbers = self._numbers(demand, snapshot, rows, what_ifs)
        return StatusColumn(np.maximum(-numbers, 0), memo.statuses.copy())

    def scores(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, what_ifs: WhatIfs = None
    ) -> NDArray[np.float64]:
        """Return the score of each node of some rows, 0 for a node without cards."""
        memo, numbers = self._numbers(demand, snapshot, rows, what_ifs)
        return memo.scores(numbers)

    def ask(self, demand: Demand, node: NodeInfo, at: NodeCards | None = None) -> Placed | Status:
        """Ask one node, which may be a what-if, perhaps with other cards than its own.

        A rejection is curable if the node would have cards with no pods on it.
        """
        return self._ask(demand, node, None, at or self._inventories.at(node))

    def grant(
        self, demand: Demand, snapshot: Snapshot, node: NodeInfo, at: NodeCards | None = None
    ) -> Placed | Status:
        """Return the cards of a pod on a node, as in `ask`."""
        row = snapshot.row_of(node.name)
        with self._lock:
            self._classes.refresh(snapshot.live)
            key = None
            if row is not None and snapshot.live.info(row).facts is node.facts:
                key = self._classes.keys(demand, np.array([row], np.intp))[0]
            return self._ask(demand, node, key, at or self._inventories.at(node))

    def _ask(self, demand: Demand, node: NodeInfo, key: ClassKey | None, at: NodeCards) -> Placed | Status:
        """Return the answer of a node, perhaps of a class."""
        refusal = self._unregistered(demand, at)
        if refusal is not None:
            return refusal
        found = self._place(demand, at, node, key)
        return found if isinstance(found, Placed) else self._refused(demand, node, key, at, found)

    def _unregistered(self, demand: Demand, at: NodeCards) -> Status | None:
        """Return the reason why a node has no cards to try, None if it has some."""
        for kind in demand.kinds:
            if kind in at.faults:
                return rejection(Code.UNRESOLVABLE, at.faults[kind])
        return None if at.cards else Status(Code.UNRESOLVABLE, (UNREGISTERED,))

    def _place(
        self, demand: Demand, at: NodeCards, node: NodeInfo, key: ClassKey | None
    ) -> Placed | Unplaced:
        identity = None if key is None else self._classes.identity(demand, key, node)
        try:
            return place(self._inventories.programs, demand, at, identity=identity)
        except EvalError as error:
            return Unplaced(error.message, fault_of(error))

    def _refused(
        self, demand: Demand, node: NodeInfo, key: ClassKey | None, at: NodeCards, found: Unplaced
    ) -> Status:
        """Return the status of a node whose cards do not fit; it is curable if they would without pods."""
        code = Code.UNRESOLVABLE
        is_used = any(card.tenants for card in at.cards) or demand.quota.used
        if is_used and self._fits_idle(demand.without_usage(), node, key):
            code = Code.UNSCHEDULABLE
        if found.fault is not None:
            return rejection(code, found.fault)
        return Status(code, (found.reason,))

    def _fits_idle(self, demand: Demand, node: NodeInfo, key: ClassKey | None) -> bool:
        """Return whether a node would have cards with no pods on it."""
        at = self._inventories.inventory(node.facts)
        if key is None:
            return isinstance(self._place(demand, at, node, key), Placed)
        return self._outcome(demand, self._memo(demand), node, self._classes.idle(key, node), at) >= 0

    def _numbers(
        self, demand: Demand, snapshot: Snapshot, rows: Rows, what_ifs: WhatIfs
    ) -> tuple[_Memo, NDArray[np.int32]]:
        """Return the numbers of the outcomes of some rows."""
        live = snapshot.live
        with self._lock:
            self._classes.refresh(live)
            memo = self._memo(demand)
            if what_ifs is not None:
                return memo, self._what_ifs(demand, memo, snapshot, rows, what_ifs)
            memo.rows.refresh()

            def compute(missing: Rows) -> NDArray[Any]:
                return self._outcomes(demand, memo, live, missing)

            return memo, memo.rows.get(rows, compute)[0]

    def _memo(self, demand: Demand) -> _Memo:
        """Return the answers for demands of this signature."""
        classes, live = self._classes, self._classes.live
        return self._memos.get(
            demand.signature,
            lambda memo: (
                memo.generation == classes.generation and memo.size < SPARE_ANSWERS + 2 * len(live.names)
            ),
            lambda: _Memo(classes.generation, ByRow(live, INT32, classes.changes, live.usage_changes)),
        )

    def _what_ifs(
        self, demand: Demand, memo: _Memo, snapshot: Snapshot, rows: Rows, ats: Sequence[NodeCards]
    ) -> NDArray[np.int32]:
        """Return the numbers of the outcomes of what-ifs: those of their classes."""
        numbers, live = [], snapshot.live
        for row, key, at in zip(rows.tolist(), self._classes.keys(demand, rows, ats), ats, strict=True):
            node = snapshot.info(row)
            # A node with other facts is of no class of the live snapshot.
            key = key if live.info(row).facts is node.facts else None
            numbers.append(self._outcome(demand, memo, node, key, at))
        return np.array(numbers, np.int32)

    def _outcome(
        self, demand: Demand, memo: _Memo, node: NodeInfo, key: ClassKey | None, at: NodeCards
    ) -> int:
        """Return the number of the outcome of a node, which is asked unless another one of its class was."""
        number = memo.shared.get(key)
        if number is None:
            outcome = self._ask(demand, node, key, at)
            number = memo.number(outcome if isinstance(outcome, Status) else outcome.score)
            if key is not None:
                memo.shared[key] = number
        return number

    def _outcomes(self, demand: Demand, memo: _Memo, live: LiveSnapshot, rows: Rows) -> NDArray[np.int32]:
        """Return the numbers of the outcomes of some rows; the first node of a class is asked for all."""
        nodes, keys = rows.tolist(), self._classes.keys(demand, rows)
        firsts = dict(zip(reversed(keys), reversed(nodes), strict=True))
        new = {key: row for key, row in firsts.items() if key is not None and key not in memo.shared}
        if new:
            self._count(demand, memo, live, new)

        def ask(row: int, key: ClassKey | None) -> int:
            node = live.info(row)
            return self._outcome(demand, memo, node, key, self._inventories.at(node))

        for key, row in new.items():
            if key not in memo.shared:
                ask(row, key)
        # One look-up for each row: `map` makes no call of it.
        numbers = list(map(memo.shared.get, keys))
        if None in firsts:
            numbers = [
                ask(row, None) if key is None else memo.shared[key]
                for row, key in zip(nodes, keys, strict=True)
            ]
        return np.array(numbers, np.int32)

    def _count(self, demand: Demand, memo: _Memo, live: LiveSnapshot, firsts: Mapping[ClassKey, int]) -> None:
        """Keep the answers of classes that need no choice of cards; `firsts` has a row of each class."""
        asked = defaultdict[Hashable, dict[ClassKey, int]](dict)
        for key, row in firsts.items():
            status = self._unregistered(demand, self._inventories.at(live.info(row)))
            if status is None:
                asked[self._classes.like(key).facts][key] = row
            else:
                memo.shared[key] = memo.number(status)
        for rows in asked.values():
            first = self._inventories.at(live.info(next(iter(rows.values()))))
            counts = CardCounts.of(self._inventories.programs, demand, first)
            if counts is None:
                return
            reasons = counts.reasons(self._classes, tuple(rows), np.array(list(rows.values()), np.intp))
            for (key, row), reason in zip(rows.items(), reasons, strict=True):
                if reason == "":
                    memo.shared[key] = memo.number(self._classes.like(key).fullness)
                elif reason is not None:
                    node = live.info(row)
                    refused = self._refused(demand, node, key, self._inventories.at(node), Unplaced(reason))
                    memo.shared[key] = memo.number(refused)

"""The nodes that have cards for a pod, kept by signature of pods and class of nodes.

Only changed nodes are asked again, and one node of each class. The cards of a pod are chosen for its node
alone.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.bounded_memo import Memo
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.devices.alike import INT32
from kdsl.plan.devices.attempt import NodeCards, Unplaced
from kdsl.plan.devices.classes import ClassKey, InventoryClasses, LikeNodes
from kdsl.plan.devices.counting import CardCounts, countable_turns
from kdsl.plan.devices.demand import CardMemo, Demand
from kdsl.plan.devices.device_error import fault_of, rejection
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.memo.answers import ByRow

SPARE_ANSWERS: Final = 4_096
"""The memo of a signature holds so many answers and twice as many as there are rows."""
MAX_SHAPES: Final = 32_768
"""The memo of cards of a signature holds so many shapes; then it is emptied."""
_ANSWER_BYTES: Final = 200
"""About the size of an answer for a class."""
WhatIfs = Sequence[NodeCards] | None
"""The nodes of a what-if; None for nodes as they are."""
CardsOfRow = Callable[[int], NodeCards]
"""Returns the cards of a row, as they are or in a what-if."""


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
    # First the score of all statuses, then those by number, as an array that grows like a list.
    _scores: array[float] = field(default_factory=lambda: array("d", (0.0,)))
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
        number = self._numbers.get(key)
        if number is None:
            if isinstance(key, Status):
                number = -len(self.statuses)
                self.statuses.append(key)
            else:
                number = len(self._scores) - 1
                self._scores.append(key)
            self._numbers[key] = number
        return number

    def scores(self, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the scores of outcomes; 0 for statuses."""
        found: NDArray[np.float64] = np.array(self._scores).take(np.maximum(numbers, -1) + 1)
        return found


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
        return self._ask(demand, node, at or self._inventories.at(node), None)

    def fits(self, demand: Demand, node: NodeInfo) -> bool:
        """Return whether a node has cards for a demand."""
        return isinstance(self._try(demand, node, self._inventories.at(node), None), Placed)

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
            return self._ask(demand, node, at or self._inventories.at(node), key)

    def _ask(self, demand: Demand, node: NodeInfo, at: NodeCards, key: ClassKey | None) -> Placed | Status:
        """Return the answer of a node, perhaps of a class."""
        found = self._try(demand, node, at, key)
        if not isinstance(found, Unplaced):
            return found
        is_curable = False
        if demand.quota.used or at.are_used:
            idle = self._inventories.inventory(node.facts)
            is_curable = isinstance(self._try(demand.without_usage(), node, idle, key), Placed)
        return _refusal(found, is_curable)

    def _try(
        self, demand: Demand, node: NodeInfo, at: NodeCards, key: ClassKey | None
    ) -> Placed | Unplaced | Status:
        """Return the cards of a pod on a node, or why it has none; a status if there are no cards to try."""
        refusal = at.refusal(demand.kinds)
        if refusal is not None:
            return refusal
        identity = None if key is None else self._classes.identity(demand, key, node)
        try:
            return place(self._inventories.programs, demand, at, identity=identity)
        except EvalError as error:
            return Unplaced(error.message, fault_of(error))

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

            def at(row: int) -> NodeCards:
                return self._inventories.at(live.info(row))

            def compute(missing: Rows) -> NDArray[Any]:
                keys = self._classes.keys(demand, missing)
                return self._by_class(demand, memo, live, missing.tolist(), keys, at)

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
        """Return the numbers of the outcomes of what-ifs."""
        nodes, live = rows.tolist(), snapshot.live
        # A node with other facts is of no class of the live snapshot.
        keys = [
            key if live.info(row).facts is snapshot.info(row).facts else None
            for row, key in zip(nodes, self._classes.keys(demand, rows, ats), strict=True)
        ]
        cards = dict(zip(nodes, ats, strict=True))
        return self._by_class(demand, memo, snapshot, nodes, keys, cards.__getitem__)

    def _by_class(
        self,
        demand: Demand,
        memo: _Memo,
        snapshot: Snapshot,
        rows: Sequence[int],
        keys: Sequence[ClassKey | None],
        at: CardsOfRow,
    ) -> NDArray[np.int32]:
        """Return the numbers of the outcomes of some rows; the first node of a class is asked for all."""
        firsts = dict(zip(reversed(keys), reversed(rows), strict=True))
        self._answer(demand, memo, {key: row for key, row in firsts.items() if key is not None}, at)
        # One look-up for each row: `map` makes no call of it.
        numbers = list(map(memo.shared.get, keys))
        if None in firsts:
            for place, (row, key) in enumerate(zip(rows, keys, strict=True)):
                if key is None:
                    found = self._ask(demand, snapshot.info(row), at(row), None)
                    numbers[place] = memo.number(found.score if isinstance(found, Placed) else found)
        return np.array(numbers, np.int32)

    def _answer(self, demand: Demand, memo: _Memo, firsts: Mapping[ClassKey, int], at: CardsOfRow) -> None:
        """Keep the answers of classes. `firsts` has a row of each, `at` returns its cards."""
        new = {key: row for key, row in firsts.items() if key not in memo.shared}
        if not new:
            return
        refused = self._count(demand, memo, new, at)
        for key, row in new.items():
            if key not in memo.shared and key not in refused:
                found = self._try(demand, self._classes.live.info(row), at(row), key)
                if isinstance(found, Unplaced):
                    refused[key] = found
                else:
                    memo.shared[key] = memo.number(found.score if isinstance(found, Placed) else found)
        curable = self._curable(demand, {key: new[key] for key in refused})
        numbers = dict[tuple[str, Fault | None, bool], int]()
        for key, unplaced in refused.items():
            case = unplaced.reason, unplaced.fault, key in curable
            if case not in numbers:
                numbers[case] = memo.number(_refusal(unplaced, key in curable))
            memo.shared[key] = numbers[case]

    def _count(
        self, demand: Demand, memo: _Memo, firsts: Mapping[ClassKey, int], at: CardsOfRow
    ) -> dict[ClassKey, Unplaced]:
        """Keep the answers of classes that fit by the number of their cards, or have none to try. Return
        those that do not fit by that number.
        """
        refused = dict[ClassKey, Unplaced]()
        programs = self._inventories.programs
        turns = countable_turns(programs, demand)
        if not turns:
            return refused
        asked = defaultdict[Hashable, dict[ClassKey, tuple[int, LikeNodes]]](dict)
        for (key, row), like in zip(firsts.items(), self._classes.like(firsts), strict=True):
            if like.refusal is None:
                asked[like.facts][key] = row, like
            else:
                memo.shared[key] = memo.number(like.refusal)
        for group in asked.values():
            rows = [row for row, _ in group.values()]
            counts = CardCounts(programs, demand, turns, at(rows[0]))
            reasons = counts.reasons(self._classes, tuple(group), np.array(rows, np.intp))
            for (key, (_, like)), reason in zip(group.items(), reasons, strict=True):
                if reason == "":
                    memo.shared[key] = memo.number(like.fullness)
                elif reason is not None:
                    refused[key] = Unplaced(reason)
        return refused

    def _curable(self, demand: Demand, refused: Mapping[ClassKey, int]) -> set[ClassKey]:
        """Return those of the classes without cards for a pod whose nodes would have some with no pods on
        them.
        """
        if not demand.quota.used:
            like = self._classes.like(refused)
            refused = {
                key: row for (key, row), each in zip(refused.items(), like, strict=True) if each.are_used
            }
        if not refused:
            return set()
        live, idle_demand = self._classes.live, demand.without_usage()
        memo, rows = self._memo(idle_demand), list(refused.values())
        idle = self._classes.idle(list(refused), np.array(rows, np.intp))

        def at(row: int) -> NodeCards:
            return self._inventories.inventory(live.info(row).facts)

        self._answer(idle_demand, memo, dict(zip(idle, rows, strict=True)), at)
        return {key for key, of_idle in zip(refused, idle, strict=True) if memo.shared[of_idle] >= 0}


def _refusal(found: Unplaced, is_curable: bool) -> Status:
    """Return the status of a node whose cards do not fit; it is curable if they would without pods."""
    code = Code.UNSCHEDULABLE if is_curable else Code.UNRESOLVABLE
    return Status(code, (found.reason,)) if found.fault is None else rejection(code, found.fault)

"""Which nodes have cards for a pod, kept for pods that are alike: what changed since is asked again, no more.

Nodes that look alike are asked once: see `looks`. What a pod gets is worked out for the node it goes to.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.check.model.sharing import DEVICES
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows, Snapshot
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.known import KnownCards
from kdsl.plan.devices.looks import LookKey, NodeLooks
from kdsl.plan.devices.naming import OwnAnswers
from kdsl.plan.devices.placing import NodeCards, Placed, Unplaced, place
from kdsl.plan.devices.stock import Inventory, Stock, device_node
from kdsl.plan.memo.answers import ByRow, Kinds

UNREGISTERED: Final = "node unregistered"
"""What HAMi says of a node that has no cards at all."""
SPARE_ANSWERS: Final = 4_096
"""So many answers for looks are kept per kind of pod beside twice as many as there are rows."""
MAX_SHAPES: Final = 32_768
"""So many shapes of cards are kept per kind of pod; then all of them are forgotten."""
_ANSWER_BYTES: Final = 200
"""About what an answer for a look takes."""
_INT32: Final = np.dtype(np.int32)


@dataclass(slots=True)
class _Kind:
    """What is known for demands of one likeness: for each row the number of its outcome.

    An outcome is the score of a node that has cards, numbered from 0, or the status of one that has not,
    numbered from -1 down. `idle` tells by idle cards and the number of what own tests say whether a node
    would do with nobody on it.
    """

    generation: int
    rows: ByRow
    shared: dict[tuple[int, int], int] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    idle: dict[tuple[Hashable, int], bool] = field(default_factory=dict)
    _scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(16))
    _numbers: dict[float | Status, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many answers are kept, of the sort of which there are most."""
        return max(len(self.shared), len(self._numbers), len(self.idle))

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES * (len(self.shared) + len(self._numbers) + len(self.idle))

    def number(self, outcome: Placed | Status) -> int:
        """Return the number of an outcome."""
        key = outcome if isinstance(outcome, Status) else float(outcome.score)
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
        """Return the scores of outcomes; 0 where there are no cards."""
        return np.where(numbers < 0, 0.0, self._scores.take(np.maximum(numbers, 0)))


@dataclass(frozen=True, slots=True)
class _Like:
    """What is known of a node by its look: what own tests say by kind, its number, and `_Kind.idle`."""

    own: Mapping[str, OwnAnswers]
    number: int
    idle: dict[tuple[Hashable, int], bool]


class Answers:
    """Asks nodes for cards, and keeps the answers of the live snapshot."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._looks = NodeLooks(stock)
        self._kinds: Kinds[_Kind] = Kinds()
        self._cards: Kinds[KnownCards] = Kinds()
        self._lock = Lock()

    def column(self, demand: Demand, snapshot: Snapshot, rows: Rows) -> StatusColumn:
        """Tell for each row of the live snapshot whether its node has cards for the pod."""
        kind, numbers = self._known(demand, snapshot.live, rows)
        return StatusColumn(np.maximum(-numbers, 0), kind.statuses.copy())

    def scores(self, demand: Demand, snapshot: Snapshot, rows: Rows) -> NDArray[np.float64]:
        """Return the scores of the nodes of some rows of the live snapshot; 0 where there are no cards."""
        kind, numbers = self._known(demand, snapshot.live, rows)
        return kind.scores(numbers)

    def ask(self, demand: Demand, node: NodeInfo, cards: tuple[Card, ...] | None = None) -> Placed | Status:
        """Ask one node, which may be a what-if, perhaps with other `cards` than those it has.

        A node that would do with nobody on it may yet do once pods have gone; no other ever will.
        """
        return self._ask(demand, node, cards)[0]

    def grant(self, demand: Demand, snapshot: Snapshot, row: int) -> Placed | Status:
        """Return what the pod gets of a node of the live snapshot, or why it gets nothing."""
        live, rows = snapshot.live, np.array([row], np.int32)
        with self._lock:
            self._looks.refresh(live)
            own = self._looks.own(demand)
            key = None if own is None else self._looks.keys(demand, own, rows)[0]
            return self._ask(demand, live.info(row), like=self._like(demand, live.info(row), key, {}))[0]

    def _like(
        self, demand: Demand, node: NodeInfo, key: LookKey | None, idle: dict[tuple[Hashable, int], bool]
    ) -> _Like | None:
        if key is None:
            return None
        return _Like(self._looks.own_answers(demand, self._stock.idle(node), key[1]), key[1], idle)

    def _ask(
        self, demand: Demand, node: NodeInfo, cards: tuple[Card, ...] | None = None, like: _Like | None = None
    ) -> tuple[Placed | Status, bool]:
        """Return the answer of a node, and whether nodes that look like it have the same."""
        stock = self._stock
        inventory = stock.inventory(node.facts)
        for asked in demand.requests:
            for kind in asked:
                if kind in inventory.faults:
                    return _went_wrong(Code.UNRESOLVABLE, f"{kind}: {inventory.faults[kind]}"), True
        if not inventory.cards:
            return Status(Code.UNRESOLVABLE, (UNREGISTERED,)), True
        at = stock.at(node) if cards is None else NodeCards(device_node(node.facts), cards)
        found = self._place(demand, at, demand.quota or NO_QUOTA, like)
        if isinstance(found, Placed):
            return found, found.is_shared
        code, is_shared = Code.UNRESOLVABLE, found.is_shared
        if any(card.tenants for card in at.cards) or (demand.quota and demand.quota.used):
            is_curable, is_same = self._would_do(demand, inventory, like)
            is_shared = is_shared and is_same
            if is_curable:
                code = Code.UNSCHEDULABLE
        if found.is_error:
            return _went_wrong(code, found.reason), is_shared
        return Status(code, (found.reason,)), is_shared

    def _would_do(self, demand: Demand, inventory: Inventory, like: _Like | None) -> tuple[bool, bool]:
        """Tell whether a node would do with nobody on it, and whether nodes that look like it would."""
        known = None if like is None else like.idle.get((inventory.shapes, like.number))
        if known is not None:
            return known, True
        limits = Quota(demand.quota.limits) if demand.quota else NO_QUOTA
        found = self._place(demand, inventory.at, limits, like)
        would_do = isinstance(found, Placed)
        if like is not None and found.is_shared:
            like.idle[inventory.shapes, like.number] = would_do
        return would_do, found.is_shared

    def _place(self, demand: Demand, at: NodeCards, quota: Quota, like: _Like | None) -> Placed | Unplaced:
        known = self._cards.get(demand.traits, lambda known: len(known) < MAX_SHAPES, KnownCards)
        try:
            return place(
                self._stock.programs,
                demand.pod,
                demand.requests,
                demand.policy,
                at,
                quota,
                known=known,
                own=None if like is None else like.own,
            )
        except EvalError as error:
            return Unplaced(error.message, is_shared=False, is_error=True)

    def _known(self, demand: Demand, live: LiveSnapshot, rows: Rows) -> tuple[_Kind, NDArray[np.int32]]:
        """Return the numbers of the outcomes of some rows."""
        with self._lock:
            looks = self._looks
            looks.refresh(live)
            most = SPARE_ANSWERS + 2 * len(live.names)
            kind = self._kinds.get(
                demand.likeness,
                lambda known: known.generation == looks.generation and known.size < most,
                lambda: _Kind(looks.generation, ByRow(live, _INT32, live.fact_changes, live.usage_changes)),
            )
            kind.rows.refresh()

            def compute(missing: Rows) -> NDArray[Any]:
                return self._outcomes(demand, kind, live, missing)

            return kind, kind.rows.get(rows, compute)[0]

    def _outcomes(self, demand: Demand, kind: _Kind, live: LiveSnapshot, rows: Rows) -> NDArray[np.int32]:
        own = self._looks.own(demand)
        keys = [None] * len(rows) if own is None else self._looks.keys(demand, own, rows)
        numbers = []
        for row, key in zip(rows.tolist(), keys, strict=True):
            number = None if key is None else kind.shared.get(key)
            if number is None:
                node = live.info(row)
                like = self._like(demand, node, key, kind.idle)
                outcome, is_shared = self._ask(demand, node, like=like)
                number = kind.number(outcome)
                if key is not None and is_shared:
                    kind.shared[key] = number
            numbers.append(number)
        return np.array(numbers, np.int32)


def _went_wrong(code: Code, reason: str) -> Status:
    """Return the rejection of a node of which a device cannot say whether it has cards."""
    return Status(code, (reason,), faults=(Fault(DEVICES, reason),))

"""Which nodes have cards for a pod, kept for pods that are alike: what changed since is asked again, no more.

Nodes that look alike are asked once: see `looks`. What a pod gets is worked out for the node it goes to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.cluster.node import NodeInfo
from kdsl.cluster.snapshot import LiveSnapshot, Rows, Snapshot
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.devices.demand import Demand
from kdsl.plan.devices.looks import NodeLooks
from kdsl.plan.devices.placing import NodeCards, Placed, Unplaced, place
from kdsl.plan.devices.stock import Stock, device_node
from kdsl.plan.standing.answers import ByRow, Kinds
from kdsl.plan.values import EvalError

UNREGISTERED: Final = "node unregistered"
"""What HAMi says of a node that has no cards at all."""
SPARE_ANSWERS: Final = 4_096
"""So many answers for looks are kept per kind of pod beside twice as many as there are rows."""
_ANSWER_BYTES: Final = 200
"""About what an answer for a look takes."""
_INT32: Final = np.dtype(np.int32)


@dataclass(slots=True)
class _Kind:
    """What is known for demands of one likeness: for each row the number of its outcome.

    An outcome is the score of a node that has cards, or the status of one that has not.
    """

    generation: int
    rows: ByRow
    shared: dict[tuple[int, int], int] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    _numbers: dict[float | Status, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + _ANSWER_BYTES * (len(self.shared) + len(self.scores))

    def number(self, outcome: Placed | Status) -> int:
        """Return the number of an outcome."""
        key = outcome if isinstance(outcome, Status) else float(outcome.score)
        if key not in self._numbers:
            self._numbers[key] = len(self.scores)
            self.scores.append(0.0 if isinstance(key, Status) else key)
            self.statuses.append(key if isinstance(key, Status) else SUCCESS)
        return self._numbers[key]


class Answers:
    """Asks nodes for cards, and keeps the answers of the live snapshot."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._looks = NodeLooks(stock)
        self._kinds: Kinds[_Kind] = Kinds()
        self._lock = Lock()

    def column(self, demand: Demand, snapshot: Snapshot, rows: Rows) -> StatusColumn:
        """Tell for each row of the live snapshot whether its node has cards for the pod."""
        kind, numbers = self._known(demand, snapshot.live, rows)
        ids = np.array([0 if each is SUCCESS else at for at, each in enumerate(kind.statuses, 1)], np.int32)
        return StatusColumn(ids.take(numbers), [SUCCESS, *kind.statuses])

    def scores(self, demand: Demand, snapshot: Snapshot, rows: Rows) -> NDArray[np.float64]:
        """Return the scores of the nodes of some rows of the live snapshot; 0 where there are no cards."""
        kind, numbers = self._known(demand, snapshot.live, rows)
        return np.array(kind.scores, np.float64).take(numbers)

    def ask(self, demand: Demand, node: NodeInfo, cards: tuple[Card, ...] | None = None) -> Placed | Status:
        """Ask one node, which may be a what-if, perhaps with other `cards` than those it has.

        A node that would do with nobody on it may yet do once pods have gone; no other ever will.
        """
        return self._ask(demand, node, cards)[0]

    def _ask(
        self, demand: Demand, node: NodeInfo, cards: tuple[Card, ...] | None = None
    ) -> tuple[Placed | Status, bool]:
        """Return the answer of a node, and whether nodes that look like it have the same."""
        stock = self._stock
        inventory = stock.inventory(node.facts)
        for asked in demand.requests:
            for kind in asked:
                if kind in inventory.faults:
                    return Status(Code.UNRESOLVABLE, (f"{kind}: {inventory.faults[kind]}",)), True
        if not inventory.cards:
            return Status(Code.UNRESOLVABLE, (UNREGISTERED,)), True
        at = stock.at(node) if cards is None else NodeCards(device_node(node.facts), cards)
        found = self._place(demand, at, demand.quota or NO_QUOTA)
        if isinstance(found, Placed):
            return found, found.is_shared
        code, is_shared = Code.UNRESOLVABLE, found.is_shared
        if any(card.tenants for card in at.cards) or (demand.quota and demand.quota.used):
            limits = Quota(demand.quota.limits) if demand.quota else NO_QUOTA
            idle = self._place(demand, stock.idle(node), limits)
            is_shared = is_shared and idle.is_shared
            if isinstance(idle, Placed):
                code = Code.UNSCHEDULABLE
        return Status(code, (found.reason,)), is_shared

    def _place(self, demand: Demand, at: NodeCards, quota: Quota) -> Placed | Unplaced:
        try:
            return place(self._stock.programs, demand.pod, demand.requests, demand.policy, at, quota)
        except EvalError as error:
            return Unplaced(error.message, is_shared=False)

    def _known(self, demand: Demand, live: LiveSnapshot, rows: Rows) -> tuple[_Kind, NDArray[np.int32]]:
        """Return the numbers of the outcomes of some rows."""
        with self._lock:
            looks = self._looks
            looks.refresh(live)
            most = SPARE_ANSWERS + 2 * len(live.names)
            kind = self._kinds.get(
                demand.likeness,
                lambda known: (
                    known.generation == looks.generation and max(len(known.shared), len(known.scores)) < most
                ),
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
                outcome, is_shared = self._ask(demand, live.info(row))
                number = kind.number(outcome)
                if key is not None and is_shared:
                    kind.shared[key] = number
            numbers.append(number)
        return np.array(numbers, np.int32)

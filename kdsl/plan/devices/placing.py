"""The cards that a pod would get on a node, and the node's score: the algorithm of HAMi's scheduler.

An ordinary init container runs beside the sidecars before it; sidecars and containers run together. The pod
uses the larger of the two parts of each card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.cluster.devices.codec import collapse
from kdsl.cluster.devices.pods import DeviceContainer, Phase
from kdsl.plan.devices.attempt import CardListener, ContainerAttempt, NodeCards, Unplaced
from kdsl.plan.devices.demand import Allocation, Allotment, Demand, DeviceRequest
from kdsl.plan.devices.identity import IdentityAnswers
from kdsl.plan.devices.program import DeviceProgram


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod fits: its cards by kind, and the node's score."""

    score: np.float32
    allocations: Mapping[str, Allocation]


def place(
    programs: Mapping[str, DeviceProgram],
    demand: Demand,
    at: NodeCards,
    listener: CardListener | None = None,
    identity: Mapping[str, IdentityAnswers] | None = None,
) -> Placed | Unplaced:
    """Return the cards that the pod would get on a node; EvalError in a `value`.

    `identity` has the answers of identity tests by kind: they only save time.
    """
    run = _Run(programs, demand, at, listener, identity or {})
    for number, container in enumerate(demand.pod.containers):
        unplaced = run.container(number, container)
        if unplaced is not None:
            return unplaced
    allocations = run.allocations()
    score = at.fullness
    for kind, allocation in allocations.items():
        score = np.float32(score + programs[kind].value(demand, at, allocation))
    return Placed(score, allocations)


@dataclass(slots=True)
class _Run:
    """One pod on one node, container by container.

    `cards` are those that sidecars and containers leave, in the order in which they were tried last.
    """

    programs: Mapping[str, DeviceProgram]
    demand: Demand
    at: NodeCards
    listener: CardListener | None
    identity: Mapping[str, IdentityAnswers]
    cards: list[Card] = field(init=False)
    got: list[dict[str, Allotment]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cards = list(reversed(self.at.cards))

    def container(self, number: int, container: DeviceContainer) -> Unplaced | None:
        """Give a container its cards; return a reason if it gets none."""
        asked = self.demand.requests[number]
        cards = list(self.cards)
        allotments: dict[str, Allotment] = {}
        self.got.append(allotments)
        for kind, request in asked.items():
            candidates = self._candidates(cards, request, asked.values())
            cards = [*candidates, *(card for card in cards if not is_of(card.type, kind))]
            attempt = ContainerAttempt(
                demand=self.demand,
                node=self.at.node,
                container=container,
                request=request,
                cards=candidates,
                allocated=self._earlier(kind, container.phase),
                allows=self._allows(kind),
                identity=self.identity.get(kind),
            )
            if self.listener is not None:
                self.listener.begins(attempt)
            found = self.programs[kind].fitting.fit(attempt, self.listener)
            if self.listener is not None:
                self.listener.ends(found)
            if isinstance(found, Unplaced):
                return found
            allotments[kind] = Allotment(container, request, found)
            cards = _with_grants(cards, found)
        if container.phase is not Phase.INIT:
            self.cards = cards
        return None

    def allocations(self) -> dict[str, Allocation]:
        """Return the cards of each kind that the pod requests."""
        return {
            kind: Allocation(
                tuple(
                    got.get(kind) or Allotment(container, DeviceRequest(kind))
                    for container, got in zip(self.demand.pod.containers, self.got, strict=True)
                )
            )
            for kind in self.demand.kinds
        }

    def _candidates(
        self, cards: Sequence[Card], request: DeviceRequest, asked: Iterable[DeviceRequest]
    ) -> list[Card]:
        """Return the cards of the requested kind in the order of trying."""
        found = [card for card in cards if is_of(card.type, request.kind)]
        order = self.programs[request.kind].order
        return order.ordered(found, order.sort_keys(found, self.demand, self.at, request, asked))

    def _earlier(self, kind: str, phase: Phase) -> tuple[Allotment, ...]:
        """Return the cards of containers before this one that run beside it."""
        is_init = phase is Phase.INIT
        return tuple(
            got[kind]
            for container, got in zip(self.demand.pod.containers, self.got, strict=False)
            if kind in got and (container.phase is Phase.INIT) == is_init
        )

    def _allows(self, kind: str) -> Callable[[Sequence[DeviceGrant]], bool] | None:
        """Return a test whether quotas allow the container some cards; None without a quota."""
        names, quota = self.programs[kind].quota_names, self.demand.quota
        if not quota.limits_any(names):
            return None

        def allows(cards: Sequence[DeviceGrant]) -> bool:
            lists = [got[kind].cards if kind in got else () for got in self.got[:-1]]
            taken = collapse([*lists, tuple(cards)], self.demand.pod.phases)
            return quota.allows(
                names, sum(grant.memory for grant in taken), sum(grant.cores for grant in taken)
            )

        return allows


@lru_cache(maxsize=4096)
def is_of(type_: str, kind: str) -> bool:
    """Return whether cards of a type are of a kind: as in HAMi, if the type contains the kind."""
    return kind.lower() in type_.lower()


def of_kind(cards: Iterable[Card], kind: str) -> tuple[Card, ...]:
    """Return the cards of a kind."""
    return tuple([card for card in cards if is_of(card.type, kind)])


def _with_grants(cards: Sequence[Card], grants: Sequence[DeviceGrant]) -> list[Card]:
    by_id = {card.id: card for card in cards}
    for grant in grants:
        by_id[grant.id] = by_id[grant.id].with_usage(grant.slots, grant.memory, grant.cores)
    return [by_id[card.id] for card in cards]

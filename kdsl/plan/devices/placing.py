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
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod, Phase
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.hooks.faults import Fault
from kdsl.plan.devices.attempt import ContainerAttempt, Listener
from kdsl.plan.devices.card_memo import CardMemo
from kdsl.plan.devices.fullness import node_score
from kdsl.plan.devices.identity import IdentityAnswers
from kdsl.plan.devices.program import DeviceProgram
from kdsl.plan.devices.requests import Allocation, Allotment, DeviceRequest, Requests


@dataclass(slots=True)
class NodeCards:
    """A node and its cards with their usage."""

    node: DeviceNode
    cards: tuple[Card, ...]
    _fullness: np.float32 | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def fullness(self) -> np.float32:
        """The fill level of the cards together: `node_score`."""
        if self._fullness is None:
            self._fullness = node_score(self.cards)
        return self._fullness


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod fits: its cards by kind, and the node's score."""

    score: np.float32
    allocations: Mapping[str, Allocation]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The pod does not fit; `reason` is HAMi's."""

    reason: str
    fault: Fault | None = None


def place(
    programs: Mapping[str, DeviceProgram],
    pod: DevicePod,
    requests: Requests,
    policy: Policy,
    at: NodeCards,
    quota: Quota = NO_QUOTA,
    listener: Listener | None = None,
    memo: CardMemo | None = None,
    identity: Mapping[str, IdentityAnswers] | None = None,
) -> Placed | Unplaced:
    """Return the cards that the pod would get on a node. `quota` is that of its namespace; EvalError in a
    `value`.

    `memo` is that of the pod's signature, `identity` the answers of identity tests by kind: both only save
    time.
    """
    memo = CardMemo() if memo is None else memo
    run = _Run(programs, pod, requests, policy, at, quota, listener, memo, identity or {})
    for number, container in enumerate(pod.containers):
        reason = run.container(number, container)
        if reason:
            return Unplaced(reason, run.fault)
    allocations = run.allocations()
    score = at.fullness
    for kind, allocation in allocations.items():
        score = np.float32(score + programs[kind].value(pod, at.node, policy, at.cards, allocation))
    return Placed(score, allocations)


@dataclass(slots=True)
class _Run:
    """One pod on one node, container by container.

    `cards` are those that sidecars and containers leave, in the order in which they were tried last.
    """

    programs: Mapping[str, DeviceProgram]
    pod: DevicePod
    requests: Requests
    policy: Policy
    at: NodeCards
    quota: Quota
    listener: Listener | None
    memo: CardMemo
    identity: Mapping[str, IdentityAnswers]
    cards: list[Card] = field(init=False)
    got: list[dict[str, Allotment]] = field(default_factory=list)
    fault: Fault | None = None

    def __post_init__(self) -> None:
        self.cards = list(reversed(self.at.cards))

    def container(self, number: int, container: DeviceContainer) -> str:
        """Give a container its cards; return a reason if it gets none."""
        asked = self.requests[number]
        cards = list(self.cards)
        allotments: dict[str, Allotment] = {}
        self.got.append(allotments)
        for kind, request in asked.items():
            candidates = self._candidates(cards, request, asked.values())
            cards = [*candidates, *(card for card in cards if not is_of(card.type, kind))]
            attempt = ContainerAttempt(
                pod=self.pod,
                node=self.at.node,
                policy=self.policy,
                container=container,
                request=request,
                cards=candidates,
                allocated=self._earlier(kind, container.phase),
                allows=self._allows(kind),
                identity=self.identity.get(kind),
            )
            if self.listener is not None:
                self.listener.begins(attempt)
            fitting = self.programs[kind].fitting
            verdicts = self.memo.verdicts(request, fitting.node_facts.of_node(self.at.node))
            fitted = fitting.fit(attempt, verdicts, self.listener)
            found = fitted.found
            if self.listener is not None:
                self.listener.ends(found)
            if isinstance(found, str):
                self.fault = fitted.fault
                return found
            allotments[kind] = Allotment(container, request, found)
            cards = _with_grants(cards, found)
        if container.phase is not Phase.INIT:
            self.cards = cards
        return ""

    def allocations(self) -> dict[str, Allocation]:
        """Return the cards of each kind that the pod requests."""
        kinds = dict.fromkeys(kind for asked in self.requests for kind in asked)
        return {
            kind: Allocation(
                tuple(
                    got.get(kind) or Allotment(container, DeviceRequest(kind))
                    for container, got in zip(self.pod.containers, self.got, strict=True)
                )
            )
            for kind in kinds
        }

    def _candidates(
        self, cards: Sequence[Card], request: DeviceRequest, asked: Iterable[DeviceRequest]
    ) -> list[Card]:
        """Return the cards of the requested kind in the order of trying."""
        found = [card for card in cards if is_of(card.type, request.kind)]
        order, at = self.programs[request.kind].order, self.at
        keys = order.sort_keys(found, at.cards, self.pod, at.node, self.policy, request, asked, self.memo)
        return order.ordered(found, keys)

    def _earlier(self, kind: str, phase: Phase) -> tuple[Allotment, ...]:
        """Return the cards of containers before this one that run beside it."""
        is_init = phase is Phase.INIT
        return tuple(
            got[kind]
            for container, got in zip(self.pod.containers, self.got, strict=False)
            if kind in got and (container.phase is Phase.INIT) == is_init
        )

    def _allows(self, kind: str) -> Callable[[Sequence[DeviceGrant]], bool] | None:
        names = self.programs[kind].quota_names
        if not self.quota.limits_any(names):
            return None

        def allows(cards: Sequence[DeviceGrant]) -> bool:
            lists = [got[kind].cards if kind in got else () for got in self.got[:-1]]
            taken = collapse([*lists, tuple(cards)], self.pod.phases)
            return self.quota.allows(
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

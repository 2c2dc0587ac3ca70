"""One container that requests cards of one kind on one node; and the listener that explanations have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode
from kdsl.eval.scalar import Frame
from kdsl.eval.values import Value
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status
from kdsl.plan.devices.demand import Allotment, Demand, DeviceRequest
from kdsl.plan.devices.device_error import rejection
from kdsl.plan.devices.fullness import node_score
from kdsl.plan.devices.identity import IdentityAnswers

UNREGISTERED: Final = "node unregistered"
"""HAMi's reason for a node without cards."""


@dataclass(frozen=True, slots=True)
class NodeCards:
    """A node and its cards with their usage; `faults` has the error of each kind that is unreadable."""

    node: DeviceNode
    cards: tuple[Card, ...]
    faults: Mapping[str, Fault] = field(default_factory=dict)

    @property
    def fullness(self) -> np.float32:
        """The fill level of the cards together."""
        return node_score(self.cards)

    @property
    def are_used(self) -> bool:
        """Whether pods have parts of the cards."""
        return any(card.tenants for card in self.cards)

    def refusal(self, kinds: Iterable[str]) -> Status | None:
        """Return the status of a node without cards to try for these kinds, None if it has some."""
        for kind in kinds:
            if kind in self.faults:
                return rejection(Code.UNRESOLVABLE, self.faults[kind])
        return None if self.cards else Status(Code.UNRESOLVABLE, (UNREGISTERED,))


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The pod does not fit; `reason` is HAMi's. `fault` is the error of an expression, if any."""

    reason: str
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class ContainerAttempt:
    """One container on one node.

    `cards` are in the order of trying, `allocated` are the cards of this kind that earlier containers of the
    pod got. `allows` says whether quotas leave room for more cards, None without quotas. `identity` has the
    answers of identity tests about the cards, None where they are not known yet.
    """

    demand: Demand
    node: DeviceNode
    container: DeviceContainer
    request: DeviceRequest
    cards: Sequence[Card]
    allocated: tuple[Allotment, ...] = ()
    allows: Callable[[Sequence[DeviceGrant]], bool] | None = None
    identity: IdentityAnswers | None = None

    @property
    def names(self) -> dict[str, Value]:
        """The values of the names that all sections about cards have."""
        return names_of(self.demand, self.node, self.request)


def names_of(demand: Demand, node: DeviceNode, request: DeviceRequest) -> dict[str, Value]:
    """Return the values of the names that all sections about cards have."""
    return {"pod": demand.pod, "node": node, "policy": demand.policy, "request": request}


class CardListener(Protocol):
    """A follower of the choice of cards for a container, without a part in it."""

    def begins(self, attempt: ContainerAttempt) -> None:
        """An attempt begins."""

    def chooses(self, chooser: str) -> None:
        """The attempt has this chooser."""

    def asked(self, card: Card, frame: Frame, reason: str) -> None:
        """A card was tried, with these names of `fit` filled; the reason is empty if the card fits."""

    def ends(self, found: tuple[DeviceGrant, ...] | Unplaced) -> None:
        """The attempt ends with these cards, or with this reason."""

"""One container that requests cards of one kind on one node; and the listener that explanations have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kdsl.cluster.devices.cards import Card, DeviceGrant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.eval.scalar import Frame
from kdsl.eval.values import Value
from kdsl.plan.devices.identity import IdentityAnswers
from kdsl.plan.devices.requests import Allotment, DeviceRequest


@dataclass(frozen=True, slots=True)
class ContainerAttempt:
    """One container on one node.

    `cards` are in the order of trying, `allocated` are the cards of this kind that earlier containers of the
    pod got. `allows` says whether quotas leave room for more cards, None without quotas. `identity` has the
    answers of identity tests about the cards, None where they are not known yet.
    """

    pod: DevicePod
    node: DeviceNode
    policy: Policy
    container: DeviceContainer
    request: DeviceRequest
    cards: Sequence[Card]
    allocated: tuple[Allotment, ...]
    allows: Callable[[Sequence[DeviceGrant]], bool] | None
    identity: IdentityAnswers | None = None

    @property
    def names(self) -> dict[str, Value]:
        """The values of the names that all sections about cards have."""
        return {"pod": self.pod, "node": self.node, "policy": self.policy, "request": self.request}


class Listener(Protocol):
    """Follows how the cards of a container are chosen, without a part in it."""

    def begins(self, attempt: ContainerAttempt) -> None:
        """An attempt begins."""

    def chooses(self, chooser: str) -> None:
        """The attempt has this chooser."""

    def asked(self, card: Card, frame: Frame, reason: str) -> None:
        """A card was tried, with these names of `fit` filled; the reason is empty if the card fits."""

    def ends(self, found: tuple[DeviceGrant, ...] | str) -> None:
        """The attempt ends with these cards, or with this reason."""
